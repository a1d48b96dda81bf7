// Online softmax of one row, in the exp2 domain: scores are in log2 units (score * log2 e), sums
// are relative to a power of two, the pivot (the running maximum, or a little less with lazy
// rescaling). No tiles, threads or memory here.
//
// A row without keys ends with O = 0 and LSE = -infinity, or with the LSE of the sink. A NaN or
// +infinity among the scores makes the sum NaN.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "core/element.hpp"
#include "core/target.hpp"

namespace pagoda::softmax {

inline constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
inline constexpr float kLog2e = 1.44269504F;
inline constexpr float kLn2 = 0.693147181F;

// sum = the sum of 2^(score - pivot) over the keys so far; O is relative to the same pivot, not
// normalised. Partial results of a row (KV splits) carry one. For a partial result with normalised
// O and known LSE it is {LSE in log2 units, 1}.
struct Sums {
  float pivot = kMinusInfinity;  // -infinity: no key yet
  float sum = 0;

  [[nodiscard]] PAGODA_HOST_DEVICE bool has_keys() const { return sum != 0; }  // NaN counts
};

// When a growing maximum moves the pivot. A move rescales O, so it waits until the maximum is more
// than -kThreshold above the pivot: P then grows to 2^(kBias - kThreshold) instead of 2^kBias. P is
// scaled by 2^kBias so that a narrow type keeps more of the small values; row sum and P V contain
// the same factor, which cancels.
//
// Where the pivot is not moved by the maximum, but by P that has become too large: the sum of a
// group of P must be at most kLargestSum, which no P exceeds then. kGroup: P of a group; 0: all
// that a thread has of the row in a tile.
struct RescaleLazily {  // 16-bit P: 2^15, below 65504 where f16 ends
  static constexpr float kThreshold = -8;
  static constexpr int kBias = 0;
  static constexpr int kGroup = 0;
  static constexpr float kLargestSum = 32768;
};
// e4m3 P: at most 2^8 = 256, below 448 where e4m3 saturates. Pivots of the first keys are 2^3 below
// that, so that few rows move them: rescaling costs a warp 1,700 cycles (mha_sm90/notes/fp8.md).
struct RescaleLazilyFp8 {
  static constexpr float kThreshold = -3;
  static constexpr int kBias = 5;
  static constexpr int kGroup = 4;  // of P up to 2^kBias: 128
  static constexpr float kLargestSum = 448;
};
// Sums of P from here on may have overflowed: such a row needs the maximum of its scores.
inline constexpr float kSumOverflow = 0x1p126F;

// The state of one row over its tiles. For every tile:
//   float factor = row.begin_tile(tile_max, any(row.wants_rescale(tile_max)));
//   O *= factor;  P = 2^(score + row.offset());  row.add(sum of P);  O += P V
// any() may be an "or" over all rows that rescale O together (a warp ballot, a warpgroup): a pivot
// may move earlier than its own row needs.
template <typename Rule>
class OnlineRow {
 public:
  using RescaleRule = Rule;

  [[nodiscard]] PAGODA_HOST_DEVICE bool wants_rescale(float tile_max) const {
    return pivot_ - grown(tile_max) < Rule::kThreshold;  // false if both are -infinity
  }
  // Returns the factor for O: 1 if the pivot stays.
  PAGODA_HOST_DEVICE float begin_tile(float tile_max, bool rescales) {
    max_ = grown(tile_max);
    if (!rescales || max_ == pivot_) return 1;
    const float factor = pivot_ == kMinusInfinity ? 1.0F : ::exp2f(pivot_ - max_);
    sum_ *= factor;
    pivot_ = max_;
    return factor;
  }
  // Instead of begin_tile, after the exponentials of the tile, `largest_p` the largest of them and
  // below kSumOverflow: moves the pivot so that it becomes at most 2^kBias. Returns the factor for
  // P and O, a power of two.
  PAGODA_HOST_DEVICE float move_pivot(float largest_p) {
    const int exponent = static_cast<int>(core::float_to_bits(largest_p) >> 23U) - 127;
    const int step = exponent + 1 - Rule::kBias;
    if (step <= 0 || !(largest_p < kSumOverflow)) return 1;
    const float factor = core::bits_to_float(static_cast<uint32_t>(127 - step) << 23U);
    sum_ *= factor;
    pivot_ += static_cast<float>(step);
    if (max_ < pivot_) max_ = pivot_;
    return factor;
  }
  // P = 2^(score + offset); with a linear ScoreMap one FMA before the exp2. Finite before the first
  // key, so that masked scores of -infinity give 0 and not NaN.
  [[nodiscard]] PAGODA_HOST_DEVICE float offset() const {
    return Rule::kBias - (pivot_ == kMinusInfinity ? 0.0F : pivot_);
  }
  PAGODA_HOST_DEVICE void add(float sum_of_p) { sum_ += sum_of_p; }

  [[nodiscard]] PAGODA_HOST_DEVICE bool has_pivot() const { return pivot_ != kMinusInfinity; }
  [[nodiscard]] PAGODA_HOST_DEVICE Sums sums() const { return {pivot_ - Rule::kBias, sum_}; }
  // The largest score so far, in log2 units; the pivot may lag behind it. Only the largest maximum
  // or pivot so far where tiles had no begin_tile.
  [[nodiscard]] PAGODA_HOST_DEVICE float max() const { return max_; }

 private:
  [[nodiscard]] PAGODA_HOST_DEVICE float grown(float tile_max) const {
    return tile_max > max_ ? tile_max : max_;
  }

  float pivot_ = kMinusInfinity;
  float max_ = kMinusInfinity;
  float sum_ = 0;
};

// The merge of two disjoint sets of keys: O = a * O_a + b * O_b. The O of an operand with weight 0
// must not be read: it may be uninitialised.
struct Merged {
  Sums sums;
  float a = 0;
  float b = 0;
};
[[nodiscard]] PAGODA_HOST_DEVICE Merged merge(Sums a, Sums b) {
  if (!b.has_keys()) return {a, a.has_keys() ? 1.0F : 0.0F, 0};
  const float pivot = a.pivot > b.pivot ? a.pivot : b.pivot;
  const float weight_a = ::exp2f(a.pivot - pivot);  // 0 where a has no key
  const float weight_b = ::exp2f(b.pivot - pivot);
  return {{pivot, a.sum * weight_a + b.sum * weight_b}, weight_a, weight_b};
}

// The result of a row after all partial results are merged. The sink enters here and only here.
struct RowResult {
  float o_factor = 0;  // O * o_factor is the output; 0: write zeros, do not read O
  Sums sums{};         // sink included

  // The natural logarithm of the denominator.
  [[nodiscard]] PAGODA_HOST_DEVICE float lse() const {
    return sums.sum != 0 ? (sums.pivot + ::log2f(sums.sum)) * kLn2 : kMinusInfinity;
  }
};
// `sink`: a natural logit that is added to the denominator only; -infinity = none. `value_scale`:
// the dequantisation factor of V.
[[nodiscard]] PAGODA_HOST_DEVICE RowResult finish(Sums sums, float sink, float value_scale) {
  float pivot = sums.pivot;
  float sum = sums.sum;
  float weight = 1;  // of the sums so far, if the sink moved the pivot
  if (sink != kMinusInfinity) {
    const float exponent = sink * kLog2e;
    if (exponent > pivot) pivot = exponent;
    weight = ::exp2f(sums.pivot - pivot);
    sum = sum * weight + ::exp2f(exponent - pivot);
  }
  return {sums.has_keys() ? weight * value_scale / sum : 0.0F, {pivot, sum}};
}

// The row maximum that the API returns: natural, sink included. `max` in log2 units.
[[nodiscard]] PAGODA_HOST_DEVICE float finish_max(float max, float sink) {
  const float exponent = sink == kMinusInfinity ? kMinusInfinity : sink * kLog2e;
  const float largest = exponent > max ? exponent : max;
  return largest == kMinusInfinity ? kMinusInfinity : largest * kLn2;
}

}  // namespace pagoda::softmax
