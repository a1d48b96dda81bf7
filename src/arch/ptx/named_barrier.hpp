// PTX implementation of arch/named_barrier.hpp.
//
// PTX ISA, "Parallel Synchronization and Communication Instructions": bar, barrier. Both forms
// order the participating threads' memory accesses: those before sync or arrive are visible after a
// sync returns.
#pragma once

#include "arch/layout/where.hpp"
#include "core/target.hpp"

namespace pagoda::arch {
inline namespace ptx {

PAGODA_DEVICE void syncthreads(Where = Where::current()) { __syncthreads(); }

PAGODA_DEVICE void named_barrier_sync(int id, int threads, Where = Where::current()) {
  asm volatile("barrier.cta.sync.aligned %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
PAGODA_DEVICE void named_barrier_arrive(int id, int threads, Where = Where::current()) {
  asm volatile("barrier.cta.arrive.aligned %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

}  // namespace ptx
}  // namespace pagoda::arch
