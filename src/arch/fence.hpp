// Fences between proxies and engines.
//
//   void fence_proxy_async_shared()     generic accesses to shared memory <-> TMA, bulk copies,
//   wgmma, tcgen05 (fence.proxy.async.shared::cta) void fence_proxy_async_global()     the same for
//   global memory void fence_proxy_async()            both
// fence_mbarrier_init: mbarrier.hpp; thread_fence: memory.hpp; wgmma and tcgen05 fences: with their
// instructions.
#pragma once

#include "core/target.hpp"

#if PAGODA_ON_GPU
#include "arch/ptx/fence.hpp"
#else
#include "arch/emu/fence.hpp"
#endif
