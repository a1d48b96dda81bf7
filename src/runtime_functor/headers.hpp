// The headers that NVRTC compiles kernels from, as text: those of the kernels, and of the standard
// library what they use. The build embeds them (CMakeLists.txt).
#pragma once

#include <span>

namespace pagoda::runtime_functor {

struct Header {
  const char* name;  // as #include spells it
  const char* text;
};

[[nodiscard]] std::span<const Header> headers();

}  // namespace pagoda::runtime_functor
