// Real half of arch/named_barrier.hpp: bar.sync and bar.arrive.
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
