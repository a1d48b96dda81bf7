// The calls of latent attention, and how many CTAs they get.
#include "kernels/mha_sm90/latent_launch.hpp"

#include <algorithm>
#include <bit>

#include "core/int_math.hpp"
#include "core/v_inside_k.hpp"
#include "kernels/common/call_arguments.hpp"
#include "kernels/common/kv_buffer/decode_arguments.hpp"
#include "kernels/common/schedule_choice.hpp"
#include "kernels/mha_sm90/call_tiles.hpp"
#include "kernels/mha_sm90/schedule.hpp"

namespace pagoda::mha_sm90 {

using core::Problem;

namespace {

constexpr int32_t kMostSideBySide = UINT8_MAX;

// Row tiles that read the same keys, whose CTAs take one interval together: the head tiles, and the
// row tiles of all tokens where all sequences have as many and at most a sixteenth of the CTAs is
// left over. Measured: decoding of two tokens of 64 heads, whose row tiles read the keys at
// different times, takes as long as DRAM takes for reading them twice (notes/latent.md).
int32_t row_tiles_side_by_side(const Problem& p, const PackedRows& packed, int32_t num_sms) {
  const bool have_as_many_tokens = kernels::total_rows(p) == int64_t{p.batch} * p.max_seqlen_q;
  const int64_t all =
      int64_t{packed.head_tiles} * core::ceil_div(p.max_seqlen_q, packed.tokens) * p.num_kv_heads;
  if (!have_as_many_tokens || p.num_kv_heads > 1 || all > std::min(kMostSideBySide, num_sms)) {
    return packed.head_tiles;
  }
  const auto sides = static_cast<int32_t>(all);
  return 16 * (num_sms % sides) <= num_sms ? sides : packed.head_tiles;
}

}  // namespace

core::Fit fit_latent(const Shape& shape, const Problem& p, const Options& options,
                     std::string* reason) {
  using core::Fit;
  Fit fit = kernels::fit_of(p, shape.dtype, shape.depth_qk, shape.depth_vo, false, reason);
  if (fit != Fit::kServes) return fit;
  if (p.head_dim_qk <= core::kMostDimsOfSeparateV) {
    return core::unfit(Fit::kShapes, reason, [&] {
      return "head dims " + std::to_string(p.head_dim_qk) + " x " + std::to_string(p.head_dim_vo) +
             ": these are for larger ones";
    });
  }
  fit = kernels::fit_of_schedule(options, {Schedule::kStreamK}, reason);
  if (fit == Fit::kServes) fit = kernels::fit_without_splits(options, reason);
  if (fit != Fit::kServes) return fit;
  if (!core::is_v_inside_k(p)) {
    return core::unfit(Fit::kFeatures, reason, [] {
      return "head dims above 256 need V in the first columns of K, in the same memory (latent "
             "attention)";
    });
  }
  if (kernels::score_class(p) != ScoreClass::kPlain || p.functor.type != nullptr) {
    return core::unfit(Fit::kFeatures, reason, [] {
      return "latent attention has masks that are intervals, no soft cap, no ALiBi and no biases";
    });
  }
  const TileConfig tile = tile_of(shape, RowKind::kPacked, ScoreClass::kPlain);
  const PackedRows packed = PackedRows::of(p.group, tile.block_rows);
  if (!is_kv_by_tma(p, tile) || !kernels::is_possible(q_map(p, tile, packed.heads))) {
    return core::unfit(Fit::kFeatures, reason, [] {
      return "latent attention needs Q and K that TMA can load: rows at multiples of 16 bytes, "
             "pages of 8 keys or more, no left padding of pages";
    });
  }
  return Fit::kServes;
}

Launch latent_launch(const Problem& p, const Shape& shape, int32_t num_sms, bool may_split) {
  constexpr int32_t kFewKeyTiles = 96, kFewestKeyTiles = 17;
  Launch launch{.rows = RowKind::kPacked};
  const TileConfig tile = tile_of(shape, launch.rows, launch.scores);
  const PackedRows packed = PackedRows::of(p.group, tile.block_rows);
  launch.heads = packed.heads;
  const int64_t rows = kernels::total_rows(p);
  const int64_t token_tiles = std::min<int64_t>(rows, rows / packed.tokens + p.batch);
  const int64_t row_tiles = token_tiles * p.num_kv_heads;  // of a head tile
  const int32_t most = std::max(1, num_sms / packed.head_tiles);
  const int32_t key_tiles = core::ceil_div(p.max_seqlen_kv_bound, tile.BN) + 1;
  launch.shares_merge = may_split && 2 * row_tiles <= most && p.batch <= tile.threads();
  launch.side_by_side = packed.head_tiles;
  if (!launch.shares_merge) launch.side_by_side = row_tiles_side_by_side(p, packed, num_sms);
  // Measured, us, with one, two, three and four KV tiles a split: 1 x 512 17.2, 19.3, 22.8, 22.8; 1
  // x 1k 18.7, 18.7, 21.5, 22.5; 1 x 4k 25.7, 21.6, 22.4, 23.2; 1 x 8k 27.6, 27.6, 25.1, 25.0. Of
  // 16 heads 1 x 1k 16.8, 17.6, 19.9, 23.6; 1 x 8k 27.3, 23.4, 23.8, 24.0.
  const int32_t of_split = key_tiles > kFewKeyTiles ? 4 : key_tiles > kFewestKeyTiles ? 2 : 1;
  const int64_t splits = std::max(2, core::ceil_div(key_tiles, of_split));
  const int64_t wanted = row_tiles * (launch.shares_merge ? splits : key_tiles);
  const int32_t groups = std::max(1, num_sms / launch.side_by_side);
  launch.ctas = launch.side_by_side * static_cast<int32_t>(std::min<int64_t>(wanted, groups));
  return launch;
}

void set_latent_work(int32_t ctas, int32_t side_by_side, kernels::AttentionArguments& a) {
  const mask::IntervalMask& interval = a.mask.interval;
  const bool sees_all =
      interval.rule.left == mask::IntervalRule::kOpen &&
      (interval.rule.right == mask::IntervalRule::kOpen || interval.rule.right == 0) &&
      interval.rule.chunk == 0 && interval.valid_lengths == nullptr;
  const operand::KeyRows& keys = a.sequences.keys;
  const bool has_page_lengths = keys.kind == operand::KeyRowsKind::kPaged &&
                                (keys.paged.first_page_of == nullptr ||
                                 std::has_single_bit(static_cast<uint32_t>(keys.paged.page_size)));
  const bool has_lengths =
      keys.leftpad == nullptr && (keys.kind == operand::KeyRowsKind::kDense || has_page_lengths);
  if (!sees_all || !has_lengths || a.is_batch_invariant || a.sequences.valid_rows != nullptr ||
      a.sequences.q_positions != nullptr || a.num_kv_heads > 1 || side_by_side > kMostSideBySide) {
    return;
  }
  a.ctas_per_kv_head = ctas / side_by_side;
  kernels::DecodeArguments& decode = a.decode;
  decode.by_row_tiles = arch::Divisor(side_by_side);
  decode.token_tiles = static_cast<uint8_t>(side_by_side);
  decode.tile_tokens = static_cast<uint8_t>(a.row_block.tokens);
  kernels::kv_buffer::set_lengths(keys, decode);
}

}  // namespace pagoda::mha_sm90
