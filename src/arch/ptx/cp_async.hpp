// PTX implementation of arch/cp_async.hpp (sm_80). 16-byte copies bypass L1 (.cg); 4 and 8 bytes
// exist as .ca only.
//
// PTX ISA, "Data Movement and Conversion Instructions": cp.async, cp.async.commit_group,
// cp.async.wait_group; "Parallel Synchronization and Communication Instructions":
// cp.async.mbarrier.arrive. What is relied on: both addresses are aligned to the copy's size; the
// copies are weak and unordered, wait_group makes them visible to the thread that issued them, and
// a barrier after it, or the mbarrier, to other threads.
#pragma once

#include <cstdint>

#include "arch/layout/where.hpp"
#include "arch/ptx/cuda_ptx.hpp"
#include "arch/ptx/mbarrier.hpp"
#include "arch/ptx/memory.hpp"
#include "core/target.hpp"

namespace pagoda::arch {
inline namespace ptx {

template <int Bytes>
PAGODA_DEVICE void cp_async(SharedPtr<void> to, GlobalPtr<const void> from,
                            int32_t valid_bytes = Bytes, Where = Where::current()) {
  static_assert(Bytes == 4 || Bytes == 8 || Bytes == 16, "cp.async copies 4, 8 or 16 bytes");
  if constexpr (Bytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to.address()),
                 "l"(__cvta_generic_to_global(RawGlobal::of(from))), "r"(valid_bytes)
                 : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to.address()),
                 "l"(__cvta_generic_to_global(RawGlobal::of(from))), "n"(Bytes), "r"(valid_bytes)
                 : "memory");
  }
}

PAGODA_DEVICE void cp_async_commit(Where = Where::current()) {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
template <int N>
PAGODA_DEVICE void cp_async_wait(Where = Where::current()) {
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}
PAGODA_DEVICE void cp_async_mbarrier_arrive(MBarrier& barrier, Where = Where::current()) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(barrier.address())
               : "memory");
}

}  // namespace ptx
}  // namespace pagoda::arch
