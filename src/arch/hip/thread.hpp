// AMD implementation of arch/thread.hpp. A warp is a wavefront of 64 lanes.
#pragma once

#include <cstdint>

#include "arch/layout/types.hpp"
#include "arch/layout/where.hpp"
#include "core/target.hpp"

namespace pagoda::arch {
inline namespace hip {

inline constexpr int kWarpSize = 64;

PAGODA_DEVICE int thread_idx(Where = Where::current()) {
  return static_cast<int>(__builtin_amdgcn_workitem_id_x());
}
PAGODA_DEVICE int thread_idx_again() { return thread_idx(); }
PAGODA_DEVICE int lane_idx(Where = Where::current()) { return thread_idx() % kWarpSize; }

// A register of the scalar unit, so that branches on it are scalar branches.
PAGODA_DEVICE int warp_idx(Where = Where::current()) {
  return __builtin_amdgcn_readfirstlane(thread_idx() / kWarpSize);
}
PAGODA_DEVICE int warpgroup_idx(Where = Where::current()) {
  return __builtin_amdgcn_readfirstlane(thread_idx() / 128);
}

PAGODA_DEVICE Dim3 block_idx(Where = Where::current()) {
  return {static_cast<int32_t>(__builtin_amdgcn_workgroup_id_x()),
          static_cast<int32_t>(__builtin_amdgcn_workgroup_id_y()),
          static_cast<int32_t>(__builtin_amdgcn_workgroup_id_z())};
}
// The first implicit arguments of code object version 5 (LLVM, "User Guide for AMDGPU Backend"):
// hidden_block_count_x, y, z.
PAGODA_DEVICE Dim3 grid_dim(Where = Where::current()) {
  const auto* counts =
      (const __attribute__((address_space(4))) int32_t*)__builtin_amdgcn_implicitarg_ptr();
  return {counts[0], counts[1], counts[2]};
}

}  // namespace hip
}  // namespace pagoda::arch
