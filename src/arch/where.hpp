// Where a primitive was called: the emulator's reports, mutation sites and traces carry it. On the
// GPU it is empty and costs nothing. Every primitive takes `Where where = Where::current()` last;
// code that wraps primitives passes its own `where` on, so that a report names the caller.
#pragma once

#include "core/target.hpp"

#if PAGODA_ON_GPU
namespace pagoda::arch {
inline namespace ptx {
struct Where {
  static constexpr PAGODA_HOST_DEVICE Where current() { return {}; }
};
}  // namespace ptx
}  // namespace pagoda::arch
#else
#include <source_location>
namespace pagoda::arch {
inline namespace emu {
using Where = std::source_location;
}  // namespace emu
}  // namespace pagoda::arch
#endif
