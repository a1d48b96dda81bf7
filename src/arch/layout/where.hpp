// The source location of a primitive's call, for the emulator's reports, mutation sites and traces.
// On the GPU it is empty and costs nothing. Every primitive takes `Where where = Where::current()`
// as its last parameter; a function that wraps primitives passes its own `where` on, so that a
// report names its caller.
#pragma once

#include "core/target.hpp"

#if PAGODA_ON_GPU
namespace pagoda::arch {
struct Where {
  static constexpr PAGODA_HOST_DEVICE Where current() { return {}; }
};
}  // namespace pagoda::arch
#else
#include <cstdint>
#include <source_location>
namespace pagoda::arch {
inline namespace emu {
#if defined(__cpp_lib_source_location)
using Where = std::source_location;
#else  // clang 14 with libstdc++ 12: the library needs a builtin that this clang lacks
class Where {
 public:
  static constexpr Where current(const char* file = __builtin_FILE(),
                                 uint_least32_t line = __builtin_LINE(),
                                 uint_least32_t column = __builtin_COLUMN()) noexcept {
    Where where;
    where.file_ = file;
    where.line_ = line;
    where.column_ = column;
    return where;
  }
  [[nodiscard]] constexpr const char* file_name() const noexcept { return file_; }
  [[nodiscard]] constexpr uint_least32_t line() const noexcept { return line_; }
  [[nodiscard]] constexpr uint_least32_t column() const noexcept { return column_; }

 private:
  const char* file_ = "";
  uint_least32_t line_ = 0;
  uint_least32_t column_ = 0;
};
#endif
}  // namespace emu
}  // namespace pagoda::arch
#endif
