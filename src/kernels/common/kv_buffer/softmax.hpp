// Softmax of a warp's fragments of scores: score mods, mask, row maxima, P = exp2(S - pivot).
//
// Rows of a lane: m tile m and row r of it are row m * MMA_M + Instruction::row(lane, r) of the
// warp. The only state of a row that is kept over the KV tiles is that of the online softmax; what
// a mask needs (token, head, visible keys) is computed again in masked tiles, because the mainloop
// has no registers left for it.
#pragma once

#include <cmath>
#include <concepts>
#include <cstdint>

#include "arch/fault.hpp"
#include "arch/math.hpp"
#include "arch/thread.hpp"
#include "arch/warp.hpp"
#include "kernels/common/kv_buffer/storage.hpp"
#include "kernels/common/row.hpp"
#include "kernels/common/row_epilogue.hpp"
#include "softmax/online.hpp"

namespace pagoda::kernels::kv_buffer {

using Row = kernels::Row<softmax::RescaleLazily>;
using Online = softmax::OnlineRow<softmax::RescaleLazily>;

template <class Config>
class Softmax {
 public:
  using Ops = Operands<Config>;
  using T = typename Config::T;
  using I = typename Ops::Instruction;
  static constexpr TileConfig tile = Config::tile;
  static constexpr int kWarpKeys = tile.WN();
  static constexpr bool is_general = tile.scores == ScoreClass::kGeneral;
  using Scores = float[Ops::m_tiles][Ops::n_tiles][Ops::elements];

  PAGODA_DEVICE Softmax(const AttentionParams& params, int warp_m)
      : params_(params), warp_m_(warp_m) {}

  // Row `i` of this lane: its index in the work tile.
  [[nodiscard]] PAGODA_DEVICE int row_index(int i) const {
    return warp_m_ * tile.WM() + i / I::kRows * tile.mma.M + I::row(arch::lane_idx(), i % I::kRows);
  }
  [[nodiscard]] PAGODA_DEVICE Row make_row(const Work& work, int i) const {
    return tile_row<softmax::RescaleLazily, tile.row_map()>(params_, work, row_index(i));
  }

  // Score mods of the general class, and masks, in KV tile `index` of `work`. `first_key`: of this
  // warp in the tile.
  PAGODA_DEVICE void apply_mods_and_mask(const Work& work, int32_t index, int first_key,
                                         Scores& s) const {
    if constexpr (tile.is_decode) {
      const int32_t column = work.walk.column(index);
      const int32_t seen_by_all = work.rows.position(work.rows.first_row) + 1;
      bool is_seen_by_all = column + tile.BN <= seen_by_all;
      if constexpr (tile.decodes_general) {
        const int32_t last_row = work.rows.first_row + work.rows.num_rows - 1;
        is_seen_by_all &= work.rows.position(last_row) - column <= params_.mask.interval.rule.left;
      }
      if (is_seen_by_all) return;
      PAGODA_UNROLL
      for (int i = 0; i < Ops::rows; ++i) {
        Row row;
        row.keys = {0, work.rows.seqlen_kv};
        if constexpr (tile.has_tokens) row = make_row(work, i);
        apply_mask(work, row, column + first_key, i, s);
      }
      return;
    }
    const bool is_masked = index >= work.walk.unmasked_end || index < work.walk.unmasked_begin;
    if (!is_general && !kHasFunctorScore<Config> && !is_masked) return;
    const int32_t column = first_key_of<Config>(work.walk, index) + first_key;
    const float k_scale = is_general ? kernels::k_scale(params_, work) : 1.0F;
    PAGODA_UNROLL
    for (int i = 0; i < Ops::rows; ++i) {
      const Row row = make_row(work, i);
      if constexpr (is_general) apply_score_mods(work, row, column, k_scale, i, s);
      if constexpr (kHasFunctorScore<Config>) apply_functor_score(work, row, column, i, s);
      if (is_masked) apply_mask(work, row, column, i, s);
    }
  }

  // TileConfig::decodes_general: products become their tanh, in units of the cap.
  PAGODA_DEVICE void apply_soft_cap(Scores& s) const {
    const float factor = params_.score_map.inverse_range;
    if (factor == 0) return;
    PAGODA_UNROLL
    for (int i = 0; i < Ops::rows; ++i) {
      PAGODA_UNROLL
      for (int c = 0; c < kColumns; ++c) {
        score(s, i, c) = softmax::tanh_by_exp2(score(s, i, c) * factor);
      }
    }
  }

  // The largest score of each row in this warp's keys; equal in the lanes that share the row.
  PAGODA_DEVICE void row_max(const Scores& s, float (&largest)[Ops::rows]) const {
    PAGODA_UNROLL
    for (int i = 0; i < Ops::rows; ++i) {
      float value = score(s, i, 0);
      PAGODA_UNROLL
      for (int c = 1; c < kColumns; ++c) value = fmaxf(value, score(s, i, c));
      PAGODA_UNROLL
      for (int step = 1; step < I::kRowLanes; step *= 2) {
        value = fmaxf(value, arch::shuffle_xor(value, step * I::kRowStride));
      }
      largest[i] = value;
    }
  }

  // Moves the pivots of the rows to `largest`, the maxima of the tile before `scale` (from score to
  // log2 units, > 0), where a lane of the warp needs it, and rescales O with them. All warps that
  // share rows decide alike.
  template <int columns>
  PAGODA_DEVICE void move_pivots(float scale, const float (&largest)[Ops::rows],
                                 Online (&online)[Ops::rows],
                                 float (&o)[Ops::m_tiles][columns][Ops::elements]) const {
    int wants = 0;  // no ||: it would be a branch for each row
    PAGODA_UNROLL
    for (int i = 0; i < Ops::rows; ++i) {
      wants |= static_cast<int>(online[i].wants_rescale(largest[i] * scale));
    }
    if (!arch::any(wants != 0)) {
      PAGODA_UNROLL
      for (int i = 0; i < Ops::rows; ++i) online[i].begin_tile(largest[i] * scale, false);
      return;
    }
    PAGODA_UNROLL
    for (int i = 0; i < Ops::rows; ++i) {
      float factor = online[i].begin_tile(largest[i] * scale, true);
      online[i].add(arch::mutable_value("row sum not rescaled", 0.0F,
                                        online[i].sums().sum * (1 / factor - 1)));
      factor = arch::mutable_value("O not rescaled", factor, 1.0F);
      PAGODA_UNROLL
      for (int n = 0; n < columns; ++n) {
        PAGODA_UNROLL
        for (int c = 0; c < I::kColumns; ++c) {
          o[i / I::kRows][n][i % I::kRows * I::kColumns + c] *= factor;
        }
      }
    }
  }

  // Columns first .. first + count - 1 of S become P, and the row sums of this lane grow.
  template <int first, int count>
  PAGODA_DEVICE void exp2_scores(float scale, const float (&offsets)[Ops::rows], Scores& s,
                                 Online (&online)[Ops::rows]) const {
    PAGODA_UNROLL
    for (int i = 0; i < Ops::rows; ++i) {
      float sums[2];  // two independent chains of additions
      PAGODA_UNROLL
      for (int c = 0; c < count; ++c) {
        float& p = score(s, i, first + c);
        p = arch::exp2_approx(p * scale + offsets[i]);
        sums[c % 2] = c < 2 ? p : sums[c % 2] + p;
      }
      online[i].add(sums[0] + sums[1]);
    }
  }

  // Two elements of P. A NaN among them need not stay one: the sum of the row has it, too, and
  // makes all of the row NaN.
  static PAGODA_DEVICE uint32_t pack_p(float low, float high) {
    using Product = typename Ops::Product;
    if constexpr (std::same_as<Product, arch::BFloat16>) return arch::pack_bf16_numbers(low, high);
    return pack_pair<Product>(low, high);
  }

  // Score `c` of the lane's row i: of key key(c) of the warp.
  static constexpr int kColumns = Ops::n_tiles * I::kColumns;
  static PAGODA_DEVICE float& score(Scores& s, int i, int c) {
    return s[i / I::kRows][c / I::kColumns][i % I::kRows * I::kColumns + c % I::kColumns];
  }
  static PAGODA_DEVICE const float& score(const Scores& s, int i, int c) {
    return s[i / I::kRows][c / I::kColumns][i % I::kRows * I::kColumns + c % I::kColumns];
  }
  static PAGODA_DEVICE int key(int c) {
    return c / I::kColumns * tile.mma.N + I::column(arch::lane_idx(), c % I::kColumns);
  }

 private:
  PAGODA_DEVICE void apply_score_mods(const Work& work, const Row& row, int32_t column,
                                      float k_scale, int i, Scores& s) const {
    const softmax::ScoreMap map = params_.score_map.scaled(k_scale);
    if (map.is_linear()) {
      PAGODA_UNROLL
      for (int c = 0; c < kColumns; ++c) score(s, i, c) *= map.scale_log2;
    } else {
      PAGODA_UNROLL
      for (int c = 0; c < kColumns; ++c) score(s, i, c) = map.capped(score(s, i, c));
    }
    if (!row.is_valid) return;
    add_biases<kColumns>(
        params_, work.rows, row, [&s, i](int c) -> float& { return score(s, i, c); },
        [column](int c) { return column + key(c); });
  }

  // Products become scores in natural units.
  PAGODA_DEVICE void apply_functor_score(const Work& work, const Row& row, int32_t column, int i,
                                         Scores& s) const {
    if (!row.is_valid) return;
    const QueryRow query = query_row(work.rows, row.token, row.q_head);
    PAGODA_UNROLL
    for (int c = 0; c < kColumns; ++c) {
      score(s, i, c) = functor_score<Config>(params_, query, column + key(c), score(s, i, c),
                                             params_.score_map.scale_log2);
    }
  }

  // Interval::keep32, in prefill with head dim 128 by selects instead of its shift: with the shift
  // ptxas 13.0 schedules the products there worse, although they are not in the masked code (1.6 %
  // of the time of a call without a mask, H100).
  static PAGODA_DEVICE uint32_t keep32(const mask::Interval& keys, int32_t column) {
    if constexpr (!Ops::token_gen && tile.depth_qk == 128) {
      const auto low_ones = [](int32_t count) {
        if (count <= 0) return 0U;
        return count >= 32 ? 0xffffffffU : (1U << static_cast<uint32_t>(count)) - 1U;
      };
      return low_ones(keys.hi - column) & ~low_ones(keys.lo - column);
    }
    return keys.keep32(column);
  }

  // Scores of masked keys become -infinity. General masks: the lanes that share a row evaluate a
  // word of 32 keys each, and shuffles share the words.
  PAGODA_DEVICE void apply_mask(const Work& work, const Row& row, int32_t column, int i,
                                Scores& s) const {
    constexpr int kWords = (kWarpKeys + 31) / 32;
    const int lane = arch::lane_idx();
    PAGODA_UNROLL
    for (int first = 0; first < kWords; first += I::kRowLanes) {
      uint32_t own = 0;
      if constexpr (is_general) {
        const int32_t base = column + 32 * (first + lane / I::kRowStride % I::kRowLanes);
        if (row.is_valid && row.keys.keep32(base) != 0) {
          own = params_.mask.row(work.rows, row.token).keep32(base);
        }
      }
      PAGODA_UNROLL
      for (int word = first; word < first + I::kRowLanes && word < kWords; ++word) {
        uint32_t keep = keep32(row.keys, column + 32 * word);
        if constexpr (is_general) {
          const int index = lane / I::kRowStride % I::kRowLanes;
          keep = arch::shuffle(own, lane + (word - first - index) * I::kRowStride);
        }
        keep = arch::mutable_value("one key dropped", keep, keep & keep >> 1U);
        keep = arch::mutable_value("one hidden key kept", keep, keep | keep << 1U);
        keep >>= static_cast<uint32_t>(I::column(lane, 0));  // then the bits are constants
        PAGODA_UNROLL
        for (int c = 0; c < kColumns; ++c) {
          const int of_lane_0 = c / I::kColumns * tile.mma.N + I::column(0, c % I::kColumns);
          if (of_lane_0 / 32 != word) continue;
          if ((keep >> static_cast<uint32_t>(of_lane_0 % 32) & 1U) == 0) {
            score(s, i, c) = softmax::kMinusInfinity;
          }
        }
      }
    }
    if constexpr (kHasFunctorMask<Config>) {
      if (row.keys.empty()) return;  // padding rows are no rows of a functor
      const QueryRow query = query_row(work.rows, row.token, row.q_head);
      PAGODA_UNROLL
      for (int c = 0; c < kColumns; ++c) {
        if (!functor_keeps<Config>(params_, query, column + key(c))) {
          score(s, i, c) = softmax::kMinusInfinity;
        }
      }
    }
  }

  const AttentionParams& params_;
  int warp_m_;
};

}  // namespace pagoda::kernels::kv_buffer
