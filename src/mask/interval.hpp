// The definition of which keys a query sees, for every mask whose keys are an interval: none,
// causal, window, chunked, padding and their intersections. Host and device; 32-bit throughout.
//
// Both bounds are monotonic in the query's position, and the intervals of neighbouring positions
// overlap or touch: first and last row therefore determine the keys of a tile of queries.
#pragma once

#include <cstdint>

#include "core/target.hpp"

namespace pagoda::mask {

// The lowest `count` bits, count in any range.
PAGODA_HOST_DEVICE constexpr uint32_t low_ones(int32_t count) {
  const int32_t bits = count < 0 ? 0 : (count > 32 ? 32 : count);
  // The upper word of a 64-bit shift: one instruction on a GPU, no branch.
  return static_cast<uint32_t>((uint64_t{0xffffffffU} << static_cast<uint32_t>(bits)) >> 32U);
}

// Keys [lo, hi); empty when hi <= lo.
struct Interval {
  int32_t lo = 0;
  int32_t hi = 0;

  [[nodiscard]] PAGODA_HOST_DEVICE constexpr bool empty() const { return hi <= lo; }
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr bool contains(int32_t key) const {
    return lo <= key && key < hi;
  }
  // Bit i: whether key `column + i` is inside. column >= 0.
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr uint32_t keep32(int32_t column) const {
    return low_ones(hi - column) & ~low_ones(lo - column);
  }
  // Bound by bound: the result stays monotonic in the position even where it is empty.
  friend PAGODA_HOST_DEVICE constexpr Interval operator&(Interval a, Interval b) {
    return {a.lo > b.lo ? a.lo : b.lo, a.hi < b.hi ? a.hi : b.hi};
  }
  // The bounding interval of both.
  friend PAGODA_HOST_DEVICE constexpr Interval operator|(Interval a, Interval b) {
    return {a.lo < b.lo ? a.lo : b.lo, a.hi > b.hi ? a.hi : b.hi};
  }
};

// max(q - left, chunk of q) <= k <= min(q + right, chunk of q). Causal is right = 0; a causal
// window of W keys is left = W - 1, right = 0.
struct IntervalRule {
  static constexpr int32_t kOpen = INT32_MAX;

  int32_t left = kOpen;   // >= 0
  int32_t right = kOpen;  // >= 0
  int32_t chunk = 0;      // 0 = none

  // Keys of [0, num_keys) that the query at `position` sees. No step overflows for any position
  // and bound; a negative position (fewer keys than queries) precedes every key.
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr Interval visible(int32_t position,
                                                              int32_t num_keys) const {
    Interval keys{0, num_keys};
    if (position > left) keys.lo = difference(position, left);
    if (right != kOpen && position < num_keys - right - 1) keys.hi = position + right + 1;
    if (chunk > 0) {
      const int32_t begin = position - position % chunk;  // <= 0 where the position is
      const int32_t end = position < 0 ? 0 : (begin < num_keys - chunk ? begin + chunk : num_keys);
      keys = keys & Interval{begin, end};
    }
    if (keys.lo > num_keys) keys.lo = num_keys;
    if (keys.hi < 0) keys.hi = 0;
    return keys;
  }

 private:
  // Unsigned, because nvcc 13.0 miscompiles the signed subtraction: it drops the guard and computes
  // max(0, a - b), which wraps (seen on an H200: a negative position with an open bound saw no
  // key).
  static PAGODA_HOST_DEVICE constexpr int32_t difference(int32_t a, int32_t b) {
    return static_cast<int32_t>(static_cast<uint32_t>(a) - static_cast<uint32_t>(b));
  }
};

}  // namespace pagoda::mask
