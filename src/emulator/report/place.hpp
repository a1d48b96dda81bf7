// Source lines as text: "planted.hpp:73".
#pragma once

#include <string>
#include <string_view>

#include "arch/layout/where.hpp"

namespace pagoda::emulator {

using arch::Where;

// The name of the file without its folders.
[[nodiscard]] inline std::string file_of(const Where& where) {
  const std::string_view path = where.file_name();
  return std::string(path.substr(path.find_last_of('/') + 1));
}

// "planted.hpp:73"
[[nodiscard]] inline std::string line_of(const Where& where) {
  return file_of(where) + ":" + std::to_string(where.line());
}

// "mbarrier_wait at planted.hpp:73"
[[nodiscard]] inline std::string call_at(const char* primitive, const Where& where) {
  return std::string(primitive) + " at " + line_of(where);
}

}  // namespace pagoda::emulator
