// The number of query heads in a row tile of tokens, by the time that the model of splits says.
#include "kernels/mha_sm90/head_packing.hpp"

#include <algorithm>

#include "kernels/mha_sm90/call_tiles.hpp"

namespace pagoda::mha_sm90 {
namespace {

using core::Problem;

// A partial result, in those of 128 columns. KV tiles take about as long with O of 256 columns,
// which have half as many keys, as with fewer; those of short row tiles, which have half as many
// keys, too, half as long.
double part_size(const TileConfig& tile) {
  const bool is_short = tile.ctas_per_sm > 1 && tile.BN < 128;
  return tile.depth_vo > 128 || is_short ? 2 : 1;
}
kernels::KVSplits kv_splits(const Problem& p, const schedule::TileGrid& grid,
                            const TileConfig& tile, int32_t num_ctas) {
  const kernels::SplitTile split{.BN = tile.BN,
                                 .part_size = part_size(tile),
                                 .may_share = tile.may_share_merge(),
                                 .ctas_per_sm = tile.ctas_per_sm,
                                 .may_have_least_tiles = tile.may_have_least_tiles()};
  if (tile.has_equal_shares) {
    return {.time = kernels::time_of_equal_shares(p, grid, num_ctas, split)};
  }
  return kernels::kv_splits(p, grid, num_ctas, split);
}

}  // namespace

Packing packing_of(const Problem& p, const TileConfig& tile, int32_t num_ctas) {
  // Of the time with one head each where row tiles are split, which is the slower one by less than
  // the model says, the more so in few KV tiles. Whole row tiles of prompts are packed where the
  // model sees no difference, too, and so are those that wait for DRAM, if fewer of them load the
  // keys. Measured, notes/row_tiles.md.
  constexpr double kMostTime = 0.97, kEqualTime = 1;
  constexpr double kMostUncertainTime = 0.85, kMostTimeOfShares = 0.95;
  constexpr double kMostLongTime = 0.93, kLongTime = 20;
  // Of the time with fewer heads, but several: fewer row tiles load the keys fewer times.
  constexpr double kMostTimeOfMore = 1.03;
  // What DRAM delivers to a multiprocessor, if all of them load, in the time of a KV tile; and the
  // KV tiles that begin, end and merge take.
  constexpr double kBytesOfKVTile = 26 << 10, kWholeCost = 2, kSplitCost = 6;
  // What the loads take longer for each further row tile that loads the same keys, where they take
  // as long as the row tiles, or nearly: of chunks of groups.
  constexpr double kLoadAgain = 0.15, kAsLong = 0.8;
  const double of_bound = kernels::has_unequal_lengths(p) ? kernels::kMeanOfUnequal : 1;
  const double bytes = of_bound * static_cast<double>(visible_kv_bytes(p));
  const double split_cost = kSplitCost * (tile.depth_vo > 128 ? 2 : 1);
  const double of_loads = bytes * tile.ctas_per_sm / (kBytesOfKVTile * num_ctas);
  const double kv_heads = static_cast<double>(p.num_kv_heads) * p.batch;
  const bool may_be_long = p.group > 1 && tile.depth_vo <= 128 && !are_prompts(p);
  const auto is_split = [&](const kernels::KVSplits& splits) {
    return splits.num_splits > 1 || tile.has_equal_shares;
  };
  const auto packing = [&](int32_t heads) {
    const auto grid = grid_of(p, tile, Launch{.heads = heads});
    const kernels::KVSplits splits = kv_splits(p, grid, tile, num_ctas);
    const bool are_long = may_be_long && of_loads > kAsLong * splits.time;
    const double loads_of_keys = grid.num_tiles() / kv_heads;
    const double again = are_long ? kLoadAgain * std::max(0.0, loads_of_keys - 1) : 0;
    const double least = of_loads * (1 + again) + (is_split(splits) ? split_cost : kWholeCost);
    return Packing{heads, splits, std::max(splits.time, least), std::max(splits.rounds_time, least),
                   grid.num_tiles()};
  };
  Packing best = packing(1);
  if (!tile.may_pack_heads() || p.functor.type != nullptr || p.group == 1) return best;
  // A row tile has one scale of Q.
  if (p.q_scales.values != nullptr && p.q_scales.group % p.group != 0) return best;
  const bool is_unequal = kernels::has_unequal_lengths(p);
  // Windows over prompts: fewer keys for fewer tokens, by the model; measured, 4 % slower.
  if (kernels::max_visible_keys(p, 1) < p.max_seqlen_kv_bound && are_prompts(p)) return best;
  for (int32_t heads = 2; heads <= std::min(p.group, int32_t{kRows}); ++heads) {
    if (p.group % heads != 0) continue;
    if (kRows % heads != 0 && !tile.may_have_empty_rows()) continue;
    const Packing packed = packing(heads);
    if (is_unequal) {  // the keys of short sequences are loaded once
      best = packed;
      continue;
    }
    const bool is_long = packed.time > kLongTime && packed.time == packed.splits.time;
    const bool waits_for_loads = of_loads > packed.splits.time &&
                                 packed.num_tiles < best.num_tiles &&
                                 (tile.depth_vo <= 128 || !is_split(packed.splits));
    const double of_whole = are_prompts(p) && tile.element_bytes == 2 ? kEqualTime : kMostTime;
    const double most = best.heads > 1             ? kMostTimeOfMore
                        : tile.has_equal_shares    ? kMostTimeOfShares
                        : waits_for_loads          ? kEqualTime
                        : !is_split(packed.splits) ? of_whole
                        : is_long                  ? kMostLongTime
                                                   : kMostUncertainTime;
    // Row tiles of several heads may be one wave where those of one head are two.
    const double of_rounds = packed.rounds_time / best.rounds_time;
    const bool has_fewer_rounds = !is_split(packed.splits) && of_rounds <= kMostTime;
    if (packed.time > most * best.time && !has_fewer_rounds) continue;
    if (of_rounds <= kMostTimeOfMore) best = packed;
  }
  return best;
}

Packing packing_of(const Problem& p, const Shape& shape, RowKind rows, int32_t num_sms) {
  const TileConfig tile = tile_of(shape, rows, ScoreClass::kPlain);
  return packing_of(p, tile, num_sms * tile.ctas_per_sm);
}

}  // namespace pagoda::mha_sm90
