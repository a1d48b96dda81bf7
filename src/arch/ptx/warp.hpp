// PTX implementation of arch/warp.hpp: warp intrinsics, and elect.sync.
//
// PTX ISA, "Parallel Synchronization and Communication Instructions": bar.warp.sync, vote.sync,
// redux.sync (sm_80), elect.sync (sm_90; which lane it elects is unspecified, but the same for the
// same mask); "Data Movement and Conversion Instructions": shfl.sync. Only bar.warp.sync orders
// memory.
#pragma once

#include <cstdint>

#include "arch/layout/where.hpp"
#include "core/target.hpp"

namespace pagoda::arch {
inline namespace ptx {

inline constexpr uint32_t kAllLanes = 0xFFFFFFFFU;

PAGODA_DEVICE void syncwarp(uint32_t mask = kAllLanes, Where = Where::current()) {
  __syncwarp(mask);
}

PAGODA_DEVICE void converge_warp() { __syncwarp(); }

// Before sm_90 the elected lane is lane 0.
PAGODA_DEVICE int32_t elect_one(Where = Where::current()) {
#if __CUDA_ARCH__ >= 900
  int32_t elected;
  asm volatile("{ .reg .pred p; elect.sync _|p, 0xFFFFFFFF; selp.b32 %0, 1, 0, p; }"
               : "=r"(elected));
  return elected;
#else
  return threadIdx.x % 32 == 0 ? 1 : 0;
#endif
}

template <class T>
PAGODA_DEVICE T shuffle(T value, int lane, Where = Where::current()) {
  static_assert(sizeof(T) == 4, "a shuffle moves 4 bytes");
  return __shfl_sync(kAllLanes, value, lane);
}
template <int width, class T>
PAGODA_DEVICE T shuffle_of(T value, int lane, Where = Where::current()) {
  static_assert(sizeof(T) == 4, "a shuffle moves 4 bytes");
  return __shfl_sync(kAllLanes, value, lane, width);
}
template <class T>
PAGODA_DEVICE T shuffle_xor(T value, int mask, Where = Where::current()) {
  static_assert(sizeof(T) == 4, "a shuffle moves 4 bytes");
  return __shfl_xor_sync(kAllLanes, value, mask);
}
template <class T>
PAGODA_DEVICE T shuffle_up(T value, int distance, Where = Where::current()) {
  static_assert(sizeof(T) == 4, "a shuffle moves 4 bytes");
  return __shfl_up_sync(kAllLanes, value, static_cast<unsigned>(distance));
}

PAGODA_DEVICE bool any(bool predicate, Where = Where::current()) {
  return __any_sync(kAllLanes, predicate) != 0;
}
PAGODA_DEVICE bool all(bool predicate, Where = Where::current()) {
  return __all_sync(kAllLanes, predicate) != 0;
}
PAGODA_DEVICE uint32_t ballot(bool predicate, Where = Where::current()) {
  return __ballot_sync(kAllLanes, predicate);
}

PAGODA_DEVICE uint32_t reduce_add(uint32_t value, Where = Where::current()) {
  return __reduce_add_sync(kAllLanes, value);
}
PAGODA_DEVICE uint32_t reduce_max(uint32_t value, Where = Where::current()) {
  return __reduce_max_sync(kAllLanes, value);
}

}  // namespace ptx
}  // namespace pagoda::arch
