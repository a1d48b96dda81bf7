// The softmax of one row and one KV tile, in registers: score modifications and mask, the running
// maximum, exp2, the row sum. Each kernel loads S and stores P itself.
#pragma once

#include <cstdint>

#include "arch/fault.hpp"
#include "arch/math.hpp"
#include "arch/warp.hpp"
#include "kernels/common/kinds.hpp"
#include "kernels/common/row.hpp"
#include "kernels/common/row_epilogue.hpp"
#include "kernels/common/work_ring.hpp"
#include "softmax/exp2.hpp"

namespace pagoda::kernels::sm100 {

// A polynomial computes a quarter of the exponentials, except on sm_103, whose special function
// unit has twice the rate.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ == 1030
inline constexpr bool kHasPolynomials = false;
#else
inline constexpr bool kHasPolynomials = true;
#endif

// From a product of stored Q and K of the row to the product of their values. Only e4m3 queries
// have scales.
template <int q_bytes, class Row>
PAGODA_DEVICE float stored_scale(const AttentionParams& params, const Work& work, const Row& row) {
  const float scale = k_scale(params, work);
  if (q_bytes != 1 || params.q_scales.values == nullptr) return scale;
  return scale * params.q_scales.of(work.sequence, row.q_head / params.q_scale_group);
}

// Maps S to log2 units where the softmax applies it as a factor. General scores are in log2 units
// after apply_score_mods_and_mask().
template <ScoreClass scores, int q_bytes, class Row>
PAGODA_DEVICE float score_scale(const AttentionParams& params, const WorkReader& reader,
                                const Row& row) {
  if constexpr (scores == ScoreClass::kGeneral) return 1;
  return params.score_map.scale_log2 * stored_scale<q_bytes>(params, reader.work(), row);
}

// Rewrites S of keys `column` .. `column + batch - 1`. General scores get soft cap, scale and
// biases, and are in log2 units afterwards. With `is_masked`, masked keys get -infinity.
// A functor's scores are in natural units; `scale`: from products to log2 units.
template <class Config, int q_bytes, bool is_masked, int batch, class Row>
PAGODA_DEVICE void apply_score_mods_and_mask(const AttentionParams& params,
                                             const WorkReader& reader, const Row& row,
                                             int32_t column, float scale, uint32_t (&s)[batch]) {
  uint32_t keep = row.keys.keep32(column);
  QueryRow query;
  if constexpr (kHasFunctorScore<Config> || (kHasFunctorMask<Config> && is_masked)) {
    query = query_row(reader.work().rows, row.token, row.q_head);
  }
  if constexpr (kHasFunctorScore<Config>) {
    if (row.is_valid) {
      PAGODA_UNROLL
      for (int i = 0; i < batch; ++i) {
        s[i] = core::float_to_bits(
            functor_score<Config>(params, query, column + i, core::bits_to_float(s[i]), scale));
      }
    }
  }
  if constexpr (Config::tile.scores == ScoreClass::kGeneral) {
    const Work work = reader.work();
    const float stored = stored_scale<q_bytes>(params, work, row);
    float scores[batch];
    PAGODA_UNROLL
    for (int i = 0; i < batch; ++i) {
      scores[i] = params.score_map(core::bits_to_float(s[i]) * stored);
    }
    if (row.is_valid) {
      add_biases<batch>(
          params, work.rows, row, [&scores](int i) -> float& { return scores[i]; },
          [column](int i) { return column + i; });
      if (is_masked && keep != 0) {
        keep = params.mask.row(work.rows, row.token).keep32(column);
      }
    }
    PAGODA_UNROLL
    for (int i = 0; i < batch; ++i) s[i] = core::float_to_bits(scores[i]);
  }
  if constexpr (is_masked) {
    keep = arch::mutable_value("one key dropped", keep, keep & keep >> 1U);
    keep = arch::mutable_value("one hidden key kept", keep, keep | keep << 1U);
    constexpr uint32_t minus_infinity = 0xff800000U;
    PAGODA_UNROLL
    for (int i = 0; i < batch; ++i) {
      if ((keep >> static_cast<uint32_t>(i) & 1U) == 0) s[i] = minus_infinity;
    }
    if constexpr (kHasFunctorMask<Config>) {
      if (row.keys.empty()) return;  // padding rows are no rows of a functor
      PAGODA_UNROLL
      for (int i = 0; i < batch; ++i) {
        if (!functor_keeps<Config>(params, query, column + i)) s[i] = minus_infinity;
      }
    }
  }
}

// max(largest, s[0], .., s[batch - 1]), in four chains of three-operand maxima.
template <int batch>
PAGODA_DEVICE float max_of(const uint32_t (&s)[batch], float largest) {
  float chains[4] = {largest, core::bits_to_float(s[0]), core::bits_to_float(s[1]),
                     core::bits_to_float(s[2])};
  PAGODA_UNROLL
  for (int i = 3; i + 1 < batch; i += 2) {
    float& chain = chains[i / 2 % 4];
    chain = arch::max3(chain, core::bits_to_float(s[i]), core::bits_to_float(s[i + 1]));
  }
  chains[0] = arch::max3(chains[0], chains[1], core::bits_to_float(s[batch - 1]));
  return arch::max3(chains[0], chains[2], chains[3]);
}

struct TileScale {
  float factor;  // rescales O and the row sum: 1 where the pivot stays
  float offset;  // P = 2^(score + offset)
};
// Starts a KV tile of a row: moves the pivot to `tile_max` (log2 units) where a lane of the warp
// needs it. Padding rows have scores of undefined Q and are excluded from the warp ballot.
template <class Row>
PAGODA_DEVICE TileScale begin_tile(Row& row, float tile_max) {
  const bool rescales = arch::any(!row.keys.empty() && row.online.wants_rescale(tile_max));
  const float offset_before = row.online.offset();
  const float factor = row.online.begin_tile(tile_max, rescales);
  return {factor,
          arch::mutable_value("pivot of the tile before", row.online.offset(), offset_before)};
}

// P = 2^(s * scale + offset) of a batch, packed into elements of T, and added to the row sum in
// four chains. With `has_polynomials` a polynomial computes every fourth pair: the special function
// unit has a rate of 16 a cycle, and the FMA pipe is idle.
template <class T, int batch>
PAGODA_DEVICE void exp2_scores(const uint32_t (&s)[batch], float scale, float offset,
                               bool has_polynomials, float (&sums)[4],
                               uint32_t (&p)[batch * sizeof(T) / 4]) {
  PAGODA_UNROLL
  for (int i = 0; i < batch; i += 2) {
    float pair[2];
    PAGODA_UNROLL
    for (int e = 0; e < 2; ++e) {
      const float x = core::bits_to_float(s[i + e]) * scale + offset;
      const bool is_polynomial = kHasPolynomials && has_polynomials && i % 8 == 6;
      pair[e] = is_polynomial ? softmax::exp2_polynomial(x) : arch::exp2_approx(x);
      sums[i % 4 + e] += pair[e];
    }
    if constexpr (sizeof(T) == 1) {
      const uint32_t packed = arch::pack_e4m3(pair[0], pair[1]);
      if (i % 4 == 0) {
        p[i / 4] = packed;
      } else {
        p[i / 4] |= packed << 16U;
      }
    } else {
      p[i / 2] = pack_pair<T>(pair[0], pair[1]);
    }
  }
}

// Ends a KV tile of a row: adds the sums of its P. `factor`: begin_tile()'s.
template <class Row>
PAGODA_DEVICE void add_sums(Row& row, const float (&sums)[4], float factor) {
  const float sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  row.online.add(arch::mutable_value("row sum not rescaled", sum, sum + lost_sum(row, factor)));
}

}  // namespace pagoda::kernels::sm100
