// Proxy fences (fence.proxy.async): order a thread's ordinary accesses before accesses by the async
// proxy, which TMA, bulk copies, wgmma and tcgen05 use.
//
//   fence_proxy_async_shared()    shared memory
//   fence_proxy_async()           shared and global memory
//
// Other fences: fence_mbarrier_init (mbarrier.hpp), thread_fence (memory.hpp), wgmma_fence
// (wgmma.hpp), tcgen05_fence_* (tcgen05.hpp).
#pragma once

#include "core/target.hpp"

#if PAGODA_ON_GPU
#include "arch/ptx/fence.hpp"
#else
#include "arch/emu/fence.hpp"
#endif
