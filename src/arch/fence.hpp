// Fences between the ordinary accesses of a thread and the asynchronous engines: TMA, bulk copies,
// wgmma, tcgen05 (fence.proxy.async).
//
//   fence_proxy_async_shared()    shared memory
//   fence_proxy_async_global()    global memory
//   fence_proxy_async()           both
//
// Elsewhere: fence_mbarrier_init (mbarrier.hpp), thread_fence (memory.hpp), wgmma_fence (wgmma.hpp),
// tcgen05_fence_* (tcgen05.hpp).
#pragma once

#include "core/target.hpp"

#if PAGODA_ON_GPU
#include "arch/ptx/fence.hpp"
#else
#include "arch/emu/fence.hpp"
#endif
