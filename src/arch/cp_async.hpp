// Asynchronous copies by threads (cp.async, sm_80): global to shared, 4, 8 or 16 bytes each.
//
//   void cp_async<Bytes>(SharedPtr<void> dst, const void* src, int32_t valid_bytes = Bytes)   the
//   rest is filled with zero void cp_async_commit()                    closes the group of this
//   thread's copies void cp_async_wait<N>()                   at most N groups of this thread are
//   in flight; then a barrier for other threads void cp_async_mbarrier_arrive(MBarrier&)  arrives
//   (noinc) when this thread's copies so far have landed
#pragma once

#include "core/target.hpp"

#if PAGODA_ON_GPU
#include "arch/ptx/cp_async.hpp"
#else
#include "arch/emu/cp_async.hpp"
#endif
