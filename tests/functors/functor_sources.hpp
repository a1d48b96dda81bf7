// The sources of examples/functors as text, for functors that are compiled at run time. The build
// embeds them (CMakeLists.txt).
#pragma once

#include <span>
#include <stdexcept>
#include <string_view>

#include "runtime_functor/headers.hpp"

namespace pagoda::functor_tests {

// By file name: "documents.hpp".
[[nodiscard]] std::span<const runtime_functor::Header> functor_sources();

// The text of a file, which exists.
[[nodiscard]] inline const char* functor_source(std::string_view file) {
  for (const runtime_functor::Header& each : functor_sources()) {
    if (file == each.name) return each.text;
  }
  throw std::logic_error("examples/functors has no such file");
}

}  // namespace pagoda::functor_tests
