// Asynchronous copies that threads issue (cp.async, sm_80): global to shared memory, 4, 8 or 16
// bytes.
//
//   cp_async<Bytes>(SharedPtr to, GlobalPtr<const void> from, int32_t valid_bytes = Bytes)
//                               reads valid_bytes, fills the rest with zeros
//   cp_async_commit()           closes the group of this thread's copies
//   cp_async_wait<N>()          waits until at most N groups of this thread are in flight; other
//                               threads need a barrier after it
//   cp_async_mbarrier_arrive(mbarrier)
//                               arrives (noinc) when all copies of this thread so far are complete
#pragma once

#include "core/target.hpp"

#if PAGODA_ON_NVIDIA
#include "arch/ptx/cp_async.hpp"
#else
#include "arch/emu/cp_async.hpp"
#endif
