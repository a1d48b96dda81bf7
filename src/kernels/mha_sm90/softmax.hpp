// Softmax of one tile of scores in registers: score mods, row maxima, P = exp2(S - max). The only
// synchronisation are the shuffles of the four lanes that share a row, and the warp's ballot.
#pragma once

#include <cmath>
#include <cstdint>

#include "arch/fault.hpp"
#include "arch/math.hpp"
#include "arch/thread.hpp"
#include "arch/warp.hpp"
#include "core/target.hpp"
#include "kernels/common/row.hpp"
#include "kernels/common/row_epilogue.hpp"
#include "kernels/mha_sm90/config.hpp"
#include "kernels/mha_sm90/mask.hpp"
#include "kernels/mha_sm90/schedule.hpp"
#include "softmax/online.hpp"
#include "softmax/tanh.hpp"

namespace pagoda::mha_sm90 {

// General scores: products become scores in log2 units, with soft cap, ALiBi and biases. (Calling
// kernels::add_biases here changes the code that nvcc makes, hence these loops.)
template <class Config>
PAGODA_DEVICE void apply_score_mods(const AttentionParams& params, const WorkReader& reader,
                                    const Row<Config> (&rows)[2], int32_t column,
                                    float (&s)[Config::tile.BN / 2]) {
  constexpr int BN = Config::tile.BN;
  const Work work = reader.work();
  const mask::RowTile tile = work.rows;
  softmax::ScoreMap map = params.score_map;
  // Consumer::apply_stored_scales and WarpConsumer apply those of e4m3 caches.
  if constexpr (Config::tile.load == LoadKind::kTma && Config::tile.element_bytes == 2) {
    map = map.scaled(kernels::k_scale(params, work));
  }
  if (map.is_linear()) {
    PAGODA_UNROLL
    for (int i = 0; i < BN / 2; ++i) s[i] *= map.scale_log2;
  } else {
    PAGODA_UNROLL
    for (int i = 0; i < BN / 2; ++i) s[i] = map.capped(s[i]);
  }
  const int32_t first = column + 2 * (arch::lane_idx() % 4);  // this thread's first key
  PAGODA_UNROLL
  for (int r = 0; r < 2; ++r) {
    if (!rows[r].is_valid) continue;
    if (params.alibi_slopes != nullptr) {
      const float slope =
          arch::load_read_only(params.alibi_slopes + rows[r].q_head) * softmax::kLog2e;
      const int32_t position = tile.position(rows[r].token);
      PAGODA_UNROLL
      for (int i = 0; i < BN / 2; i += 4) {
        s[i + 2 * r] += softmax::alibi_bias(slope, first + 2 * i, position);
        s[i + 2 * r + 1] += softmax::alibi_bias(slope, first + 2 * i + 1, position);
      }
    }
    for (int32_t b = 0; b < params.mask.num_biases; ++b) {
      const mask::BiasRow bias = params.mask.biases[b].row(tile, rows[r].token, rows[r].q_head);
      PAGODA_UNROLL
      for (int i = 0; i < BN / 2; i += 4) {
        s[i + 2 * r] = bias.rewrite(first + 2 * i, s[i + 2 * r]);
        s[i + 2 * r + 1] = bias.rewrite(first + 2 * i + 1, s[i + 2 * r + 1]);
      }
    }
  }
}

// ScoreClass::kCapped: whether all products of the warp are in the range of ShortTanh for `factor`,
// as those of models mostly are. Else tanh takes two more instructions of MUFU a score, of which
// the exponentials have one, and which would bound the kernel.
template <int BN>
PAGODA_DEVICE bool has_small_scores(float factor, const float (&s)[BN / 2]) {
  constexpr int kChains = 4;
  float largest[kChains] = {0, 0, 0, 0};
  PAGODA_UNROLL
  for (int i = 0; i < BN / 2; ++i) largest[i % kChains] = fmaxf(largest[i % kChains], fabsf(s[i]));
  const float of_thread = fmaxf(fmaxf(largest[0], largest[1]), fmaxf(largest[2], largest[3]));
  return !arch::any(!softmax::ShortTanh::covers(factor, of_thread));
}

// Products, times `factor`, become their tanh.
template <class Config>
PAGODA_DEVICE void apply_soft_cap(float factor, bool are_small, float (&s)[Config::tile.BN / 2]) {
  constexpr int registers = Config::tile.BN / 2;
  // All of them at once would spill beside O of 256 columns.
  constexpr int kAtOnce = Config::tile.depth_vo > 128 ? 8 : registers;
  const auto tanh = softmax::ShortTanh::of(1);  // in instructions, not in registers
  PAGODA_UNROLL
  for (int first = 0; first < registers; first += kAtOnce) {
    if (are_small) {
      PAGODA_UNROLL
      for (int i = first; i < first + kAtOnce; ++i) s[i] = tanh(s[i] * factor);
    } else {
      PAGODA_UNROLL
      for (int i = first; i < first + kAtOnce; ++i) s[i] = softmax::tanh_by_exp2(s[i] * factor);
    }
  }
}

// Functors: products become scores in natural units. `scales`: of each row, from products to log2
// units.
template <class Config>
PAGODA_DEVICE void apply_functor_score(const AttentionParams& params, const WorkReader& reader,
                                       const Row<Config> (&rows)[2], int32_t column,
                                       const float (&scales)[2], float (&s)[Config::tile.BN / 2]) {
  const int32_t first = column + 2 * (arch::lane_idx() % 4);  // this thread's first key
  PAGODA_UNROLL
  for (int r = 0; r < 2; ++r) {
    if (rows[r].keys.empty()) continue;
    const QueryRow row = query_row_of<Config>(reader.work(), rows[r], r);
    PAGODA_UNROLL
    for (int i = 0; i < Config::tile.BN / 2; i += 4) {
      PAGODA_UNROLL
      for (int e = 0; e < 2; ++e) {
        float& score = s[i + 2 * r + e];
        score = kernels::functor_score<Config>(params, row, first + 2 * i + e, score, scales[r]);
      }
    }
  }
}

// Maximum over the four lanes of a row.
PAGODA_DEVICE float max_of_quad(float value) {
  value = fmaxf(value, arch::shuffle_xor(value, 1));
  return fmaxf(value, arch::shuffle_xor(value, 2));
}

// The largest of a thread's scores of row `r`.
template <int BN>
PAGODA_DEVICE float largest_of(const float (&s)[BN / 2], int r) {
  float largest = s[2 * r];
  PAGODA_UNROLL
  for (int i = 0; i < BN / 2; i += 4) {
    largest = fmaxf(largest, fmaxf(s[i + 2 * r], s[i + 2 * r + 1]));
  }
  return largest;
}

// Sum over the four lanes of a row.
PAGODA_DEVICE float sum_of_quad(float value) {
  value += arch::shuffle_xor(value, 1);
  return value + arch::shuffle_xor(value, 2);
}

// Moves the rows' pivots to the maxima of S where these are too far above them. `scales`: of each
// row, from score to log2 units, > 0. Returns whether O must be multiplied with `factors`; the same
// in all lanes.
template <int BN, class Row>
PAGODA_DEVICE bool move_pivots(const float (&s)[BN / 2], Row (&rows)[2], const float (&scales)[2],
                               float (&factors)[2]) {
  float tile_max[2];
  PAGODA_UNROLL
  for (int r = 0; r < 2; ++r) tile_max[r] = max_of_quad(largest_of<BN>(s, r)) * scales[r];
  // Padding rows are excluded from the warp ballot: their scores come from stale rows of Q. (No &&
  // and ||: they would be branches.)
  int rescales_mine = 0;
  PAGODA_UNROLL
  for (int r = 0; r < 2; ++r) {
    rescales_mine |= static_cast<int>(!rows[r].keys.empty()) &
                     static_cast<int>(rows[r].online.wants_rescale(tile_max[r]));
  }
  const bool rescales = arch::any(rescales_mine);
  PAGODA_UNROLL
  for (int r = 0; r < 2; ++r) factors[r] = rows[r].online.begin_tile(tile_max[r], rescales);
  return rescales;
}

// The sum of a thread's P of a row, and the largest of the sums by which `Rule` bounds P.
struct SumsOfP {
  float all = 0, largest_group = 0;
};

// What scores are of the registers of S: these.
struct Scores {
  float scale = 1;

  [[nodiscard]] PAGODA_DEVICE Scores scaled(float factor) const { return {scale * factor}; }
  [[nodiscard]] PAGODA_DEVICE float slope(float /*score*/) const { return scale; }
};

// P = 2^(scale * score + offset) of row `r`, of registers `begin` to `end` - 1 of S. The sums are
// of groups of 4, those of group 0 first.
template <int BN, class Map>
PAGODA_DEVICE void exp2_groups(float (&s)[BN / 2], int r, int begin, int end, float scale,
                               float offset, const Map& score, SumsOfP& sums) {
  const Map scaled = score.scaled(scale);
  const auto p = [&](int i) {
    return s[i + 2 * r] = arch::exp2_approx(s[i + 2 * r] * scaled.slope(s[i + 2 * r]) + offset);
  };
  PAGODA_UNROLL
  for (int i = begin; i < end; i += 8) {
    const float first = p(i) + p(i + 1), last = p(i + 4) + p(i + 5);
    const float group = first + last;
    sums.all = i == 0 ? group : sums.all + group;
    sums.largest_group = i == 0 ? group : fmaxf(sums.largest_group, group);
  }
}

// Row `r` of S becomes P = 2^(scale * score + offset).
template <class Rule, int BN, class Map = Scores>
PAGODA_DEVICE SumsOfP exp2_row(float (&s)[BN / 2], int r, float scale, float offset,
                               const Map& score = {}) {
  const Map scaled = score.scaled(scale);
  SumsOfP sums;
  if constexpr (Rule::kGroup == 0) {
    const auto p = [&](int i) {
      return s[i + 2 * r] = arch::exp2_approx(s[i + 2 * r] * scaled.slope(s[i + 2 * r]) + offset);
    };
    float chains[2];  // independent chains of additions
    PAGODA_UNROLL
    for (int i = 0; i < BN / 2; i += 4) {
      PAGODA_UNROLL
      for (int e = 0; e < 2; ++e) chains[e] = i == 0 ? p(i + e) : chains[e] + p(i + e);
    }
    sums.all = sums.largest_group = chains[0] + chains[1];
  } else {
    static_assert(Rule::kGroup == 4 && BN % 16 == 0);
    exp2_groups<BN>(s, r, 0, BN / 2, scale, offset, score, sums);
  }
  return sums;
}

// Adds the sums of P to those of the rows.
template <class Row>
PAGODA_DEVICE void add_sums(const SumsOfP (&sums)[2], Row (&rows)[2], float (&factors)[2]) {
  PAGODA_UNROLL
  for (int r = 0; r < 2; ++r) {
    const float sum = sums[r].all;
    rows[r].online.add(arch::mutable_value("row sum not rescaled", sum,
                                           sum + kernels::lost_sum(rows[r], factors[r])));
    factors[r] = arch::mutable_value("O not rescaled", factors[r], 1.0F);
  }
}

PAGODA_DEVICE float scale_of(float of_scores) {
  return arch::mutable_factor("softmax scale x 1.02", of_scores);
}

template <class Row>
PAGODA_DEVICE float offset_of(const Row& row, float offset_before) {
  return arch::mutable_value("pivot of the tile before", row.online.offset(), offset_before);
}

// S becomes P, relative to the rows' pivots (online softmax), and the row sums grow. `of_scores`:
// of each row, from score to log2 units, > 0. Returns whether O must be multiplied with `factors`;
// the same in all lanes.
template <int BN, class Row>
PAGODA_DEVICE bool exp2_scores(float (&s)[BN / 2], Row (&rows)[2], const float (&of_scores)[2],
                               float (&factors)[2]) {
  using Rule = typename decltype(Row::online)::RescaleRule;
  const float scales[2] = {scale_of(of_scores[0]), scale_of(of_scores[1])};
  const float before[2] = {rows[0].online.offset(), rows[1].online.offset()};
  const bool rescales = move_pivots<BN>(s, rows, scales, factors);
  // Both rows' offsets before both rows' exponentials: these are then one block without branches.
  const float offsets[2] = {offset_of(rows[0], before[0]), offset_of(rows[1], before[1])};
  SumsOfP sums[2];
  PAGODA_UNROLL
  for (int r = 0; r < 2; ++r) sums[r] = exp2_row<Rule, BN>(s, r, scales[r], offsets[r]);
  add_sums(sums, rows, factors);
  return rescales;
}

// P that is too large for its type becomes at most 2^kBias, by new pivots. `sums`: of P.
template <int BN, class Row>
PAGODA_DEVICE void lower_p(float (&s)[BN / 2], Row (&rows)[2], SumsOfP (&sums)[2],
                           float (&factors)[2]) {
  PAGODA_UNROLL
  for (int r = 0; r < 2; ++r) {
    const float largest = max_of_quad(largest_of<BN>(s, r));
    factors[r] = rows[r].online.move_pivot(rows[r].keys.empty() ? 0.0F : largest);
    const float of_p = arch::mutable_value("P not rescaled", factors[r], 1.0F);
    PAGODA_UNROLL
    for (int i = 0; i < BN / 2; i += 4) {
      s[i + 2 * r] *= of_p;
      s[i + 2 * r + 1] *= of_p;
    }
    sums[r].all *= arch::mutable_value("sum of P not rescaled", factors[r], 1.0F);
  }
}

// P, from scores in local memory, whose loops are not unrolled: they need few registers.
template <int BN, class Row>
PAGODA_DEVICE void exp2_in_loops(float (&again)[BN / 2], Row (&rows)[2], const float (&scales)[2],
                                 SumsOfP (&sums)[2], float (&factors)[2]) {
  PAGODA_UNROLL
  for (int r = 0; r < 2; ++r) {
    float largest = softmax::kMinusInfinity;
    PAGODA_NO_UNROLL
    for (int i = 0; i < BN / 4; ++i) largest = fmaxf(largest, again[i / 2 * 4 + 2 * r + i % 2]);
    factors[r] = rows[r].online.begin_tile(max_of_quad(largest) * scales[r], true);
    const float offset = rows[r].online.offset();
    float sum = 0;
    PAGODA_NO_UNROLL
    for (int i = 0; i < BN / 4; ++i) {
      float& p = again[i / 2 * 4 + 2 * r + i % 2];
      p = arch::exp2_approx(p * scales[r] + offset);
      sum += p;
    }
    sums[r].all = sum;
  }
}

// exp2_scores() without the maxima, of a tile before which every row has a pivot: P is made
// relative to the pivots as they are. They move only if P has become too large for its type. Maxima
// are an eighth to a sixth of a tile's instructions, and all its exponentials would wait for them.
//
// scores_again(float (&)[BN / 2]) makes scores again, of a tile whose P have overflowed.
// `follow_up` learns when P of a part of the tile are known: Consumer::ConvertEarly or NoFollowUp.
// `score`: what the scores are of S, Scores or softmax::ShortTanh; in one block of code, so that
// polynomials run under exponentials.
template <int BN, class Row, class ScoresAgain, class FollowUp, class Map = Scores>
PAGODA_DEVICE bool exp2_at_pivots(float (&s)[BN / 2], Row (&rows)[2], const float (&of_scores)[2],
                                  float (&factors)[2], const ScoresAgain& scores_again,
                                  FollowUp follow_up, const Map& score = {}) {
  using Rule = typename decltype(Row::online)::RescaleRule;
  const float scales[2] = {scale_of(of_scores[0]), scale_of(of_scores[1])};
  const float offsets[2] = {rows[0].online.offset(), rows[1].online.offset()};
  SumsOfP sums[2];
  if constexpr (FollowUp::kParts > 0) {
    static_assert(Rule::kGroup == 4);
    constexpr int registers = BN / 2 / FollowUp::kParts;
    PAGODA_UNROLL
    for (int part = 0; part < FollowUp::kParts; ++part) {
      PAGODA_UNROLL
      for (int r = 0; r < 2; ++r) {
        exp2_groups<BN>(s, r, registers * part, registers * (part + 1), scales[r], offsets[r],
                        score, sums[r]);
      }
      follow_up.has_p_of(part);
    }
  }
  int is_too_large = 0;
  PAGODA_UNROLL
  for (int r = 0; r < 2; ++r) {
    if constexpr (FollowUp::kParts == 0) {
      sums[r] = exp2_row<Rule, BN>(s, r, scales[r], offsets[r], score);
    }
    is_too_large |= static_cast<int>(!rows[r].keys.empty()) &
                    static_cast<int>(sums[r].largest_group > Rule::kLargestSum);
  }
  const bool rescales = arch::any(arch::mutable_value("P too large", is_too_large, 0));
  if (rescales) [[unlikely]] {
    int has_overflowed = 0;
    PAGODA_UNROLL
    for (int r = 0; r < 2; ++r) {
      has_overflowed |= static_cast<int>(!rows[r].keys.empty()) &
                        static_cast<int>(sums[r].all >= softmax::kSumOverflow);
    }
    if (arch::any(arch::mutable_value("P overflowed", has_overflowed, 0))) {
      float again[BN / 2];
      scores_again(again);
      exp2_in_loops<BN>(again, rows, scales, sums, factors);
      PAGODA_UNROLL
      for (int i = 0; i < BN / 2; ++i) s[i] = again[i];
    } else {
      lower_p<BN>(s, rows, sums, factors);
    }
    if constexpr (FollowUp::kParts > 0) {
      add_sums(sums, rows, factors);
      follow_up.has_other_pivots(factors);
      return true;
    }
  }
  add_sums(sums, rows, factors);
  return rescales;
}

struct NoFollowUp {
  static constexpr int kParts = 0;
};

template <int registers>
PAGODA_DEVICE void rescale_output(float (&o)[registers], const float (&factors)[2]) {
  PAGODA_UNROLL
  for (int i = 0; i < registers; ++i) o[i] *= factors[i / 2 % 2];
}

// Keys of one instruction of P V: 32 bytes.
template <class T>
inline constexpr int kKeysOfMma = 32 / static_cast<int>(sizeof(T));

// P in fp32 as the A operand of P V in T. Accumulator and A fragment of 16-bit elements have the
// same lanes and rows. For 8-bit elements a thread's columns of two blocks of 8 keys become four
// neighbouring columns of A: the order of the keys changes, in which transpose_v.hpp stores V. Of
// instructions `begin` to `end` - 1.
template <class T, int BN>
PAGODA_DEVICE void convert_p(const float (&s)[BN / 2], uint32_t (&p)[BN / kKeysOfMma<T>][4],
                             int begin = 0, int end = BN / kKeysOfMma<T>) {
  constexpr int registers = kKeysOfMma<T> / 2;  // of S, for the keys of one instruction
  PAGODA_UNROLL
  for (int k = begin; k < end; ++k) {
    const int from = arch::mutable_value("P of the tile's first keys", k, 0);
    PAGODA_UNROLL
    for (int i = 0; i < 4; ++i) {
      if constexpr (sizeof(T) == 1) {  // word i: row i % 2 of the thread, keys 16 (i / 2) ..
        const int at = registers * from + 8 * (i / 2) + 2 * (i % 2);
        p[k][i] = arch::pack_e4m3(s[at], s[at + 1]) |
                  static_cast<uint32_t>(arch::pack_e4m3(s[at + 4], s[at + 5])) << 16U;
      } else {
        const int at = registers * from + 2 * i;
        p[k][i] = kernels::pack_pair<T>(s[at], s[at + 1]);
      }
    }
  }
}

}  // namespace pagoda::mha_sm90
