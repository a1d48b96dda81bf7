// The calls of latent attention, and how many CTAs they get.
#include "kernels/mha_sm90/latent_launch.hpp"

#include <algorithm>

#include "core/int_math.hpp"
#include "core/v_inside_k.hpp"
#include "kernels/common/call_arguments.hpp"
#include "kernels/common/schedule_choice.hpp"
#include "kernels/mha_sm90/call_tiles.hpp"
#include "kernels/mha_sm90/schedule.hpp"

namespace pagoda::mha_sm90 {

using core::Problem;

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
  constexpr int32_t kFewKeyTiles = 64;
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
  // Measured: 1 x 1k 27.4 us with two KV tiles a split, 34 with four; 1 x 8k, whose splits are 65
  // and 33, 36.5 and 34.4.
  const int32_t of_split = key_tiles > kFewKeyTiles ? 4 : 2;
  const int64_t splits = std::max(2, core::ceil_div(key_tiles, of_split));
  const int64_t wanted = row_tiles * (launch.shares_merge ? splits : key_tiles);
  launch.ctas = packed.head_tiles * static_cast<int32_t>(std::min<int64_t>(wanted, most));
  return launch;
}

}  // namespace pagoda::mha_sm90
