// AMD implementation of arch/warp.hpp for wavefronts of 64 lanes, which execute in lockstep: data
// moves by DPP, ds_swizzle or ds_bpermute, votes are scalar masks. All 64 lanes call.
//
// AMD Instinct MI300 ISA, "Data Parallel Primitives (DPP)", "DS_SWIZZLE_B32", "DS_BPERMUTE_B32",
// "V_READLANE_B32".
#pragma once

#include <cstdint>

#include "arch/hip/thread.hpp"
#include "arch/layout/where.hpp"
#include "core/target.hpp"

namespace pagoda::arch {
inline namespace hip {

inline constexpr uint64_t kAllLanes = ~uint64_t{0};

// LDS and vector-memory operations of a wavefront complete in order: only the compiler must not
// move them.
PAGODA_DEVICE void syncwarp(uint64_t /*mask*/ = kAllLanes, Where = Where::current()) {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
  __builtin_amdgcn_wave_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
}

PAGODA_DEVICE void converge_warp() {}  // a wavefront executes in lockstep

PAGODA_DEVICE int32_t elect_one(Where = Where::current()) { return lane_idx() == 0 ? 1 : 0; }

namespace detail {

PAGODA_DEVICE uint32_t bpermute(uint32_t value, int lane) {  // wraps at 64 lanes
  return static_cast<uint32_t>(__builtin_amdgcn_ds_bpermute(lane * 4, static_cast<int32_t>(value)));
}

template <int control>
PAGODA_DEVICE uint32_t dpp(uint32_t value) {
  return static_cast<uint32_t>(
      __builtin_amdgcn_mov_dpp(static_cast<int32_t>(value), control, 0xf, 0xf, true));
}

inline constexpr int kRowRor = 0x120;  // DPP: rotates rows of 16 lanes right by the low 4 bits
inline constexpr int kRowHalfMirror = 0x141;  // DPP: reverses groups of 8 lanes

constexpr PAGODA_HOST_DEVICE int quad_perm(int a, int b, int c, int d) {
  return a | b << 2 | c << 4 | d << 6;
}

PAGODA_DEVICE uint32_t exchange_xor(uint32_t value, int mask) {
  if (__builtin_constant_p(mask)) {
    switch (mask) {
      case 1: return dpp<quad_perm(1, 0, 3, 2)>(value);
      case 2: return dpp<quad_perm(2, 3, 0, 1)>(value);
      case 4: return dpp<quad_perm(3, 2, 1, 0)>(dpp<kRowHalfMirror>(value));  // 7, then 3
      case 8: return dpp<kRowRor | 8>(value);
      case 16:  // bit mode: xor 16, or 0, and 31
        return static_cast<uint32_t>(
            __builtin_amdgcn_ds_swizzle(static_cast<int32_t>(value), 16 << 10 | 0x1f));
      default: break;
    }
  }
  return bpermute(value, lane_idx() ^ mask);
}

}  // namespace detail

// A constant lane is a readlane, and its result uniform.
template <class T>
PAGODA_DEVICE T shuffle(T value, int lane, Where = Where::current()) {
  static_assert(sizeof(T) == 4, "a shuffle moves 4 bytes");
  const auto bits = __builtin_bit_cast(uint32_t, value);
  if (__builtin_constant_p(lane)) {
    return __builtin_bit_cast(
        T, __builtin_amdgcn_readlane(static_cast<int32_t>(bits), lane % kWarpSize));
  }
  return __builtin_bit_cast(T, detail::bpermute(bits, lane));
}
template <int width, class T>
PAGODA_DEVICE T shuffle_of(T value, int lane, Where where = Where::current()) {
  return shuffle(value, lane_idx() / width * width + lane, where);
}
template <class T>
PAGODA_DEVICE T shuffle_xor(T value, int mask, Where = Where::current()) {
  static_assert(sizeof(T) == 4, "a shuffle moves 4 bytes");
  return __builtin_bit_cast(T, detail::exchange_xor(__builtin_bit_cast(uint32_t, value), mask));
}
template <class T>
PAGODA_DEVICE T shuffle_up(T value, int distance, Where = Where::current()) {
  static_assert(sizeof(T) == 4, "a shuffle moves 4 bytes");
  const int from = lane_idx() - distance;
  return __builtin_bit_cast(
      T, detail::bpermute(__builtin_bit_cast(uint32_t, value), from < 0 ? lane_idx() : from));
}

PAGODA_DEVICE uint64_t ballot(bool predicate, Where = Where::current()) {
  return __builtin_amdgcn_ballot_w64(predicate);
}
PAGODA_DEVICE bool any(bool predicate, Where = Where::current()) { return ballot(predicate) != 0; }
PAGODA_DEVICE bool all(bool predicate, Where = Where::current()) { return ballot(!predicate) == 0; }

PAGODA_DEVICE uint32_t reduce_add(uint32_t value, Where = Where::current()) {
  PAGODA_UNROLL
  for (int mask = 1; mask < kWarpSize; mask *= 2) value += detail::exchange_xor(value, mask);
  return value;
}
PAGODA_DEVICE uint32_t reduce_max(uint32_t value, Where = Where::current()) {
  PAGODA_UNROLL
  for (int mask = 1; mask < kWarpSize; mask *= 2) {
    const uint32_t other = detail::exchange_xor(value, mask);
    value = other > value ? other : value;
  }
  return value;
}

}  // namespace hip
}  // namespace pagoda::arch
