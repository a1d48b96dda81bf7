// AMD implementation of arch/named_barrier.hpp: syncthreads alone, the hardware has one barrier a
// workgroup.
//
// AMD Instinct MI300 ISA, "S_BARRIER": it counts wavefronts and waits for no memory operation. The
// fences make the compiler wait for LDS accesses (s_waitcnt lgkmcnt(0)) before it, and keep later
// accesses after it. Stores to global memory may be in flight: complete_stores (memory.hpp).
#pragma once

#include "arch/layout/where.hpp"
#include "core/target.hpp"

namespace pagoda::arch {
inline namespace hip {

PAGODA_DEVICE void syncthreads(Where = Where::current()) {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

}  // namespace hip
}  // namespace pagoda::arch
