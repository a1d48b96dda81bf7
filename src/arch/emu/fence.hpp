// Proxy fences in the emulator: they order the generic accesses that the thread knows of before
// later accesses of the asynchronous proxy.
#pragma once

#include "arch/layout/where.hpp"
#include "emulator/sync/barriers.hpp"

namespace pagoda::arch {
inline namespace emu {

// The emulator does not distinguish shared and global memory here: each form orders both.
inline void fence_proxy_async_shared(Where where = Where::current()) {
  emulator::fence_proxy_async("fence_proxy_async_shared", where);
}
inline void fence_proxy_async(Where where = Where::current()) {
  emulator::fence_proxy_async("fence_proxy_async", where);
}

}  // namespace emu
}  // namespace pagoda::arch
