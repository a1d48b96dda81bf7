// PTX implementation of arch/thread.hpp.
//
// PTX ISA, "Special Registers": %tid, %ctaid, %nctaid.
#pragma once

#include "arch/layout/types.hpp"
#include "arch/layout/where.hpp"
#include "core/target.hpp"

namespace pagoda::arch {
inline namespace ptx {

PAGODA_DEVICE int thread_idx(Where = Where::current()) { return static_cast<int>(threadIdx.x); }
PAGODA_DEVICE int thread_idx_again() {
  int index;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(index));
  return index;
}
PAGODA_DEVICE int lane_idx(Where = Where::current()) { return static_cast<int>(threadIdx.x % 32); }

// The shuffle makes the result uniform for the compiler, so that role branches are uniform
// branches.
PAGODA_DEVICE int warp_idx(Where = Where::current()) {
  return __shfl_sync(0xFFFFFFFFU, static_cast<int>(threadIdx.x / 32), 0);
}
PAGODA_DEVICE int warpgroup_idx(Where = Where::current()) {
  return __shfl_sync(0xFFFFFFFFU, static_cast<int>(threadIdx.x / 128), 0);
}

PAGODA_DEVICE Dim3 block_idx(Where = Where::current()) {
  return {static_cast<int32_t>(blockIdx.x), static_cast<int32_t>(blockIdx.y),
          static_cast<int32_t>(blockIdx.z)};
}
PAGODA_DEVICE Dim3 grid_dim(Where = Where::current()) {
  return {static_cast<int32_t>(gridDim.x), static_cast<int32_t>(gridDim.y),
          static_cast<int32_t>(gridDim.z)};
}

}  // namespace ptx
}  // namespace pagoda::arch
