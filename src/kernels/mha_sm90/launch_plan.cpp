// Chooses the instances for a call and sets their arguments.
#include "kernels/mha_sm90/launch_plan.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/int_math.hpp"
#include "kernels/common/kv_buffer/launch_plan.hpp"
#include "kernels/common/mixed_work.hpp"
#include "kernels/common/schedule_choice.hpp"
#include "kernels/mha_sm90/schedule.hpp"
#include "operand/paged_row_indices.hpp"

namespace pagoda::mha_sm90 {
namespace {

using core::Problem;
using kernels::kShortRows;
using kernels::ScheduleChoice;
using kernels::total_rows;

constexpr int32_t kFewRows = 16;
// A few query rows over up to so many bytes of keys and values are left to kernels without tensor
// maps, whose chain of dependent loads is shorter. Measured, README.md.
constexpr int64_t kSmallDecodeBytes = int64_t{512} << 20;
// K and V of a TileGrid section, with up to kFewKeys keys and with more: an H100 or H200 has 50 MB
// of L2, and each key of a short prompt is read a few times only, while Q and O of as many bytes
// pass through. Measured, README.md.
constexpr int64_t kL2BytesOfFewKeys = 16 << 20, kL2Bytes = 32 << 20;
constexpr int32_t kFewKeys = 1024;

TileConfig tile_of(const Shape& shape, RowKind rows, ScoreClass scores,
                   LoadKind load = LoadKind::kTma) {
  return mha_sm90::tile_of(shape.depth_qk, shape.depth_vo, rows, scores, load,
                           static_cast<int>(size_bytes(shape.dtype)));
}

// Boxes of the rows of a consumer: kRows / heads tokens.
arch::TensorMapSpec q_map(const Problem& p, const TileConfig& tile, int32_t heads = 1) {
  return kernels::rows_map(p, p.q, p.head_dim_qk, heads, kRows / heads, tile.swizzle);
}

bool is_kv_by_tma(const Problem& p, const TileConfig& tile) {
  const bool is_cache_fp8 = tile.load == LoadKind::kTmaFp8 || tile.widens();
  const DType dtype = is_cache_fp8 ? DType::kF8E4M3 : p.q.dtype;
  if (p.kv_kind == core::KVKind::kPaged) {
    const int rows = operand::kv_copy_rows(p.page_size, tile.BN);
    if (rows != 0 && rows < tile.fewest_copy_rows()) return false;
  }
  return p.k.dtype == dtype && kernels::is_kv_by_tma(p, tile.BN, tile.loaded_swizzle());
}

schedule::TileGrid grid_of(const Problem& p, const TileConfig& tile, const Launch& launch) {
  const int64_t l2_bytes = p.max_seqlen_kv_bound <= kFewKeys ? kL2BytesOfFewKeys : kL2Bytes;
  const int32_t tokens = tile.num_consumers * (kRows / launch.heads);
  schedule::TileGrid grid = kernels::tile_grid(p, launch.heads, tokens, l2_bytes);
  grid.num_splits = launch.num_splits;
  grid.num_whole = launch.num_whole;
  if (tile.has_equal_shares) grid.divide_among(launch.ctas);
  return grid;
}

// How row tiles of tokens load K and V; nothing: TMA can't.
std::optional<LoadKind> tokens_load(const Problem& p, const Shape& shape, ScoreClass scores) {
  const auto serves = [&](LoadKind load) {
    const TileConfig tile = tile_of(shape, RowKind::kTokens, scores, load);
    return is_kv_by_tma(p, tile) && kernels::is_possible(q_map(p, tile));
  };
  if (serves(LoadKind::kTma)) return LoadKind::kTma;
  const bool may_widen = has_widened(shape, scores) && p.functor.type == nullptr;
  if (may_widen && serves(LoadKind::kTmaWiden)) return LoadKind::kTmaWiden;
  return std::nullopt;
}

// Whether a mean row sees half of the keys: a causal mask over prompts.
bool sees_half(const Problem& p, const schedule::TileGrid& grid) {
  return grid.order == schedule::TileOrder::kLongestFirst &&
         p.max_seqlen_kv_bound < 2 * int64_t{p.max_seqlen_q};
}

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
                                 .ctas_per_sm = tile.ctas_per_sm};
  if (tile.has_equal_shares) {
    return {.time = kernels::time_of_equal_shares(p, grid, num_ctas, split)};
  }
  return kernels::kv_splits(p, grid, num_ctas, split);
}

// The number of query heads of a group in each row tile, and how the grid of these is split.
struct Packing {
  int32_t heads = 1;
  kernels::KVSplits splits{};
  double time = 0;  // splits.time, or that of the loads if it is longer
};
// The one with which a grid is done first: of tokens of one head the last row tile of a sequence
// may be nearly empty.
Packing packing_of(const Problem& p, const TileConfig& tile, int32_t num_ctas) {
  // Of the time with one head each, which is the slower one by less than that where row tiles are
  // split, the more so in few KV tiles, and under a causal mask. Measured, README.md.
  constexpr double kMostTime = 0.97, kMostUncertainTime = 0.85, kMostTimeOfShares = 0.95;
  constexpr double kMostLongTime = 0.93, kLongTime = 20;
  // Of the time with fewer heads, but several: fewer row tiles load the keys fewer times.
  constexpr double kMostTimeOfMore = 1.03;
  // What DRAM delivers to a multiprocessor, if all of them load, in the time of a KV tile; and the
  // KV tiles that begin, end and merge take.
  constexpr double kBytesOfKVTile = 26 << 10, kWholeCost = 2, kSplitCost = 6;
  const int64_t key_bytes = (p.head_dim_qk + p.head_dim_vo) * size_bytes(p.k.dtype);
  const auto bytes = static_cast<double>(int64_t{p.batch} * p.num_kv_heads * key_bytes *
                                         kernels::max_visible_keys(p, p.max_seqlen_q));
  const double split_cost = kSplitCost * (tile.depth_vo > 128 ? 2 : 1);
  const double of_loads = bytes * tile.ctas_per_sm / (kBytesOfKVTile * num_ctas);
  const auto is_split = [&](const kernels::KVSplits& splits) {
    return splits.num_splits > 1 || tile.has_equal_shares;
  };
  const auto packing = [&](int32_t heads) {
    const auto grid = grid_of(p, tile, Launch{.heads = heads});
    const kernels::KVSplits splits = kv_splits(p, grid, tile, num_ctas);
    const double least = of_loads + (is_split(splits) ? split_cost : kWholeCost);
    return Packing{heads, splits, std::max(splits.time, least)};
  };
  Packing best = packing(1);
  if (!tile.may_pack_heads() || p.functor.type != nullptr || p.group == 1) return best;
  // Windows: fewer keys for fewer tokens, by the model; measured, 4 % slower.
  if (kernels::max_visible_keys(p, 1) < p.max_seqlen_kv_bound) return best;
  const bool is_half = sees_half(p, grid_of(p, tile, Launch{}));
  for (int32_t heads = 2; heads <= std::min(p.group, int32_t{kRows}); ++heads) {
    if (p.group % heads != 0) continue;
    if (kRows % heads != 0 && !tile.may_have_empty_rows()) continue;
    const Packing packed = packing(heads);
    const bool is_long = packed.time > kLongTime && packed.time == packed.splits.time;
    const double most = best.heads > 1             ? kMostTimeOfMore
                        : tile.has_equal_shares    ? kMostTimeOfShares
                        : is_half                  ? kMostUncertainTime
                        : !is_split(packed.splits) ? kMostTime
                        : is_long                  ? kMostLongTime
                                                   : kMostUncertainTime;
    if (packed.time <= most * best.time) best = packed;
  }
  return best;
}

// The time until the last row tile of a grid is done, in row tiles that see all keys.
double makespan(const Problem& p, const TileConfig& tile, int32_t num_sms) {
  const Packing packing = packing_of(p, tile, num_sms);
  const auto rows = static_cast<double>(total_rows(p) * p.num_q_heads);
  const double waves = rows / tile.tile_rows() / num_sms;
  if (sees_half(p, grid_of(p, tile, Launch{}))) return std::max(1.0, waves / 2 + 0.25);
  return packing.splits.num_whole > 0 ? packing.splits.waves : std::ceil(waves);
}

// Keys that a mean row sees, at most.
int32_t mean_keys(const Problem& p, const schedule::TileGrid& grid) {
  const int32_t keys = kernels::max_visible_keys(p, 1);
  return keys == p.max_seqlen_kv_bound && sees_half(p, grid) ? keys / 2 : keys;
}

// Row tiles of all heads, as many as they are without partly filled ones.
int64_t full_tiles(const Problem& p, const TileConfig& tile) {
  return core::ceil_div(total_rows(p) * p.num_q_heads, int64_t{tile.tile_rows()});
}

// Short row tiles: where row tiles see few keys, all of them or, where they are many, on average.
// Measured, README.md.
bool wants_short_rows(const Problem& p, const Shape& shape, int32_t num_sms) {
  constexpr int32_t kWaves = 2, kFewestKeys = 320;
  constexpr double kShortWave = 4 / 3.0, kMostWaves = 0.8;
  const TileConfig tile = tile_of(shape, RowKind::kShortTokens, ScoreClass::kPlain);
  if (!is_kv_by_tma(p, tile)) return false;
  const int32_t keys = kernels::max_visible_keys(p, 1);
  const schedule::TileGrid grid = grid_of(p, tile, Launch{});
  const bool is_half = sees_half(p, grid);
  if (shape.depth_qk == 128) return keys <= kFewestKeys && is_half;
  if (keys <= kFewKeys) {
    const TileConfig larger = tile_of(shape, RowKind::kTokens, ScoreClass::kPlain);
    // Full prompts take whole waves: of 256 rows a multiprocessor, or of 192.
    const auto waves = [&](const TileConfig& of, int32_t num_ctas) {
      return core::ceil_div(grid_of(p, of, Launch{}).num_tiles(), num_ctas);
    };
    const double of_short = waves(tile, num_sms * tile.ctas_per_sm) * kShortWave;
    return is_half || keys < p.max_seqlen_kv_bound ||
           waves(larger, num_sms) > kMostWaves * of_short;
  }
  return mean_keys(p, grid) <= kFewKeys &&
         full_tiles(p, tile) >= int64_t{kWaves} * num_sms * tile.ctas_per_sm;
}

Packing packing_of(const Problem& p, const Shape& shape, RowKind rows, int32_t num_sms) {
  const TileConfig tile = tile_of(shape, rows, ScoreClass::kPlain);
  return packing_of(p, tile, num_sms * tile.ctas_per_sm);
}

// kTokens or kStreamKTokens, and the time of all row tiles by the model of kv_splits; of shapes
// that have kTokens alone of the two no time.
struct TokensTime {
  RowKind rows = RowKind::kTokens;
  double time = 0;
};
TokensTime drawn_or_shared(const Problem& p, const Shape& shape, int32_t num_sms,
                           const ScheduleChoice& choice) {
  // With a smaller gain by the model shares were slower in as many calls as faster. README.md.
  constexpr double kLeastGain = 0.97;
  static_assert(std::ranges::all_of(kShapes, [](const Shape& each) {
    return has_stream_k_tokens(each) == has_single_tokens(each);
  }));  // wants_single_rows asks for the time
  if (!has_stream_k_tokens(shape)) return {};
  const Packing drawn = packing_of(p, shape, RowKind::kTokens, num_sms);
  if (choice.is_automatic() && choice.num_kv_splits == 0) {
    const Packing shared = packing_of(p, shape, RowKind::kStreamKTokens, num_sms);
    if (shared.time < kLeastGain * drawn.time) {
      return {RowKind::kStreamKTokens, shared.splits.time};
    }
  }
  return {RowKind::kTokens, drawn.splits.time};
}

// Row tiles of a kind, partly filled ones included.
int32_t num_row_tiles(const Problem& p, const Shape& shape, RowKind rows, int32_t num_sms) {
  const int32_t heads = packing_of(p, shape, rows, num_sms).heads;
  const TileConfig tile = tile_of(shape, rows, ScoreClass::kPlain);
  return grid_of(p, tile, Launch{.heads = heads}).num_tiles();
}

// Row tiles of one consumer: where those of more leave multiprocessors idle. Under a causal mask
// also a few more row tiles than multiprocessors, whose longest come first. Row tiles of many keys
// are rather split. Measured, README.md.
bool wants_single_rows(const Problem& p, const Shape& shape, int32_t num_sms,
                       const TokensTime& others) {
  const TileConfig tile = tile_of(shape, RowKind::kSingleTokens, ScoreClass::kPlain);
  if (!is_kv_by_tma(p, tile)) return false;
  const int64_t row_tiles = full_tiles(p, tile);
  const int32_t keys = kernels::max_visible_keys(p, 1);
  const bool is_half = sees_half(p, grid_of(p, tile, Launch{}));
  const bool is_one_wave = row_tiles <= num_sms;
  // How many row tiles are partly filled is known only where all sequences are as long.
  const auto has_second_wave = [&] {
    return total_rows(p) == int64_t{p.batch} * p.max_seqlen_q &&
           num_row_tiles(p, shape, RowKind::kSingleTokens, num_sms) > num_sms;
  };
  if (is_half) {
    switch (shape.depth_qk) {
      case 64: return is_one_wave || (row_tiles <= int64_t{2} * num_sms && keys <= 2048);
      case 128:
        // Prompts of 145 tokens have a third row tile for the last 17 of them.
        if (is_one_wave) return keys <= 1536 && !has_second_wave();
        return 2 * row_tiles <= int64_t{3} * num_sms && keys > 512;
      default:
        if (is_one_wave) return keys <= 4096;
        return row_tiles <= int64_t{2} * num_sms && keys > 512;
    }
  }
  // Chunks, and prompts without a causal mask. Few row tiles are split anyway: partial results of
  // small ones are merged sooner.
  const bool is_quarter_wave = 4 * row_tiles <= num_sms;
  // Measured, per KV tile: at head dim 64 they take as long as those of three consumers, whose rows
  // are three times as many, at 256 two thirds of the time of those of two.
  const auto are_faster = [&] {
    const double most_time = shape.depth_qk == 64 ? 1 : 1.45;
    return packing_of(p, shape, RowKind::kSingleTokens, num_sms).splits.time <
           most_time * others.time;
  };
  switch (shape.depth_qk) {
    case 64:
      if (2 * row_tiles <= int64_t{3} * num_sms && keys <= 1024) return true;
      if (2 * row_tiles <= num_sms && keys <= 4096) return true;
      return is_quarter_wave && are_faster();
    case 128:
      if (is_one_wave && keys <= (is_quarter_wave ? 8192 : 2048)) return true;
      // So few rows that those of more consumers are as many.
      return is_quarter_wave && num_row_tiles(p, shape, RowKind::kSingleTokens, num_sms) ==
                                    num_row_tiles(p, shape, RowKind::kTokens, num_sms);
    default: return is_one_wave && keys <= (is_quarter_wave ? 8192 : 4096) && are_faster();
  }
}

// Tall row tiles take less time a row, but are fewer: few of them leave multiprocessors idle.
// Measured, README.md.
bool wants_tall_rows(const Problem& p, const Shape& shape, int32_t num_sms,
                     const TokensTime& others) {
  constexpr double kTallTime = 1.5 * 0.93;  // of a tall row tile, in row tiles of two consumers
  constexpr double kLeastGain = 0.97;
  constexpr int32_t kFewestRows = 256;  // of a sequence
  const TileConfig tall = tile_of(shape, RowKind::kTallTokens, ScoreClass::kPlain);
  const Packing packing = packing_of(p, tall, num_sms);
  if (p.max_seqlen_q * packing.heads < kFewestRows || !is_kv_by_tma(p, tall)) return false;
  if (others.rows == RowKind::kStreamKTokens) {
    return kTallTime * packing.splits.time < others.time;
  }
  const TileConfig other = tile_of(shape, RowKind::kTokens, ScoreClass::kPlain);
  return kTallTime * makespan(p, tall, num_sms) < kLeastGain * makespan(p, other, num_sms);
}

// Which row tiles of tokens a call gets.
RowKind tokens_kind(const Problem& p, const Shape& shape, ScoreClass scores, LoadKind load,
                    int32_t num_sms, const ScheduleChoice& choice) {
  // A sequence's kernel must not depend on the rest of an invariant batch.
  if (scores != ScoreClass::kPlain || load != LoadKind::kTma || p.functor.type != nullptr ||
      !choice.may_split()) {
    return RowKind::kTokens;
  }
  const TokensTime tokens = drawn_or_shared(p, shape, num_sms, choice);
  if (has_single_tokens(shape) && wants_single_rows(p, shape, num_sms, tokens)) {
    return RowKind::kSingleTokens;
  }
  if (has_short_tokens(shape) && wants_short_rows(p, shape, num_sms)) return RowKind::kShortTokens;
  if (has_tall_tokens(shape) && wants_tall_rows(p, shape, num_sms, tokens)) {
    return RowKind::kTallTokens;
  }
  return tokens.rows;
}

Launch tokens_launch(const Problem& p, const Shape& shape, ScoreClass scores, LoadKind load,
                     int32_t num_sms, const ScheduleChoice& choice) {
  Launch launch{
      .rows = tokens_kind(p, shape, scores, load, num_sms, choice), .scores = scores, .load = load};
  const TileConfig tile = tile_of(shape, launch.rows, scores, load);
  const int32_t most_ctas = num_sms * tile.ctas_per_sm;
  const Packing packing = choice.may_split() ? packing_of(p, tile, most_ctas) : Packing{};
  launch.heads = packing.heads;
  launch.num_splits =
      choice.splits(packing.splits.num_splits, core::ceil_div(p.max_seqlen_kv_bound, tile.BN));
  if (choice.num_kv_splits == 0 && launch.num_splits > 1) {
    launch.num_whole = packing.splits.num_whole;
  }
  launch.ctas =
      tile.has_equal_shares ? most_ctas : std::min(grid_of(p, tile, launch).size(), most_ctas);
  return launch;
}

// Of sequences of up to `most_rows` query rows.
LoadKind packed_load(const Problem& p, const Shape& shape, ScoreClass scores, int32_t most_rows) {
  const auto serves = [&](LoadKind load) {
    return is_kv_by_tma(p, tile_of(shape, RowKind::kPacked, scores, load));
  };
  if (serves(LoadKind::kTma)) return LoadKind::kTma;
  const bool has_few_rows = int64_t{p.group} * most_rows <= kWarpRows;
  return has_few_rows && serves(LoadKind::kTmaFp8) ? LoadKind::kTmaFp8 : LoadKind::kGather;
}

// Query rows of a sequence up to which a call over an e4m3 cache has a packed kernel of its own; 0:
// it has none. Longer sequences beside those are row tiles of tokens.
int32_t most_fp8_rows(const Problem& p, const Shape& shape, ScoreClass scores) {
  const int32_t most = kWarpRows / p.group;
  return most > 0 && packed_load(p, shape, scores, most) == LoadKind::kTmaFp8 ? most : 0;
}

// Whether row tiles that CTAs take whole occupy nearly all multiprocessors with one CTA each.
bool is_one_each(int64_t row_tiles, int32_t num_sms) {
  return row_tiles <= num_sms && 16 * row_tiles >= int64_t{15} * num_sms;
}

Launch packed_launch(const Problem& p, const Shape& shape, ScoreClass scores, LoadKind load,
                     int32_t num_sms) {
  Launch launch{.rows = RowKind::kPacked, .scores = scores, .load = load};
  const TileConfig tile = tile_of(shape, launch.rows, scores, load);
  const PackedRows packed = PackedRows::of(p.group, tile.block_rows);
  const int64_t most = kernels::max_stream_k_ctas(p, packed.tokens, packed.head_tiles, tile.BN);
  // Many rows take long to merge: half as many CTAs, hence splits, then. Row tiles that are as many
  // as multiprocessors need no split at all (whole_row_tiles), if one CTA's loads keep its
  // multiprocessor's share of memory busy.
  const int32_t rows_of_unit = std::min(packed.tokens, p.max_seqlen_q) * packed.heads;
  const int64_t row_tiles = int64_t{p.batch} * p.num_kv_heads * packed.head_tiles *
                            core::ceil_div(p.max_seqlen_q, packed.tokens);
  const bool has_wide_rows = p.head_dim_qk * size_bytes(p.k.dtype) >= 256;
  const bool has_whole_tiles = has_wide_rows && is_one_each(row_tiles, num_sms);
  const int32_t per_sm = rows_of_unit > kFewRows || has_whole_tiles ? 1 : tile.ctas_per_sm;
  launch.ctas = static_cast<int32_t>(std::min<int64_t>(most, int64_t{num_sms} * per_sm));
  return launch;
}

// Up to kWarpRows rows of a KV head, with O of 256 columns. Row tiles of tokens begin sooner than
// packed ones, as they need no search for the CTA's start. But a few packed rows are merged sooner,
// and many keys of one token are shared evenly by packed row tiles only. Measured, README.md.
bool wants_wide_tokens(const Problem& p, int32_t num_sms) {
  constexpr int32_t kUnsplitKeys = 256, kMostKeysOfOneToken = 2048, kRowsMergedSooner = 4;
  const int32_t keys = kernels::max_visible_keys(p, p.max_seqlen_q);
  if (keys <= kUnsplitKeys) return true;
  const bool is_one_token = p.max_seqlen_q == 1;
  if (!is_one_token && p.max_seqlen_q * p.group > kRowsMergedSooner) return true;
  const bool has_few_splits = 5 * int64_t{p.batch} * p.num_kv_heads >= num_sms;
  return has_few_splits && (!is_one_token || keys <= kMostKeysOfOneToken);
}

// Whether decoding sequences beside prompts are row tiles of tokens in the same grid, instead of a
// mixed launch. That divides the work by all lengths before it requests Q, which is not worth it
// where each row tile has a multiprocessor, where they are few and short, or where query heads have
// a KV head each, so that row tiles of decoding have one row. Keys are bounded, because a long row
// tile would be waited for. Measured, README.md.
bool decodes_in_row_tiles(const Problem& p, const Shape& shape, LoadKind tokens, int32_t num_sms,
                          const ScheduleChoice& choice) {
  constexpr int32_t kMostTokens = 300, kMostWideTokens = 256;
  constexpr int32_t kMostKeys = 4096, kShortKeys = 1024;
  const bool may_choose = choice.is_automatic() && choice.num_kv_splits == 0 && choice.may_split();
  if (!may_choose || kernels::score_class(p) != ScoreClass::kPlain || p.functor.type != nullptr ||
      tokens != LoadKind::kTma || shape.dtype == DType::kF8E4M3 || !has_single_tokens(shape)) {
    return false;
  }
  const int32_t keys = p.max_seqlen_kv_bound;
  if (p.max_seqlen_q <= kShortRows || keys > kMostKeys || p.group > kRows) return false;
  const TileConfig tile = tile_of(shape, RowKind::kTokens, ScoreClass::kPlain);
  const int64_t row_tiles = grid_of(p, tile, Launch{.heads = p.group}).num_tiles();
  const bool is_wide = shape.depth_vo > 128;
  const bool has_short_prompts = p.max_seqlen_q <= (is_wide ? kMostWideTokens : kMostTokens);
  if (has_short_prompts && row_tiles <= num_sms) return true;
  if (kernels::max_visible_keys(p, 1) < keys) return false;  // windows: not measured
  return p.group == 1 || (has_short_prompts && !is_wide && keys <= kShortKeys &&
                          2 * row_tiles <= int64_t{5} * num_sms);
}

// Sequences of up to so many query rows are packed, longer ones are tiles of tokens. Packed rows
// load each key once for all query heads of a KV head, but a KV tile of theirs takes longer, and
// where they are split the rows are merged one after the other. In the time of a KV tile of a row
// tile of tokens; measured, README.md.
int32_t short_rows(const Problem& p, const Shape& shape, LoadKind tokens, int32_t num_sms,
                   const ScheduleChoice& choice) {
  constexpr double kTokensCost = 7, kPackedCost = 10;
  constexpr double kMergeCost = 0.4;  // of a row and up to kSplitsAtOnce splits (merge_row)
  constexpr int64_t kSplitsAtOnce = 16;
  const ScoreClass scores = kernels::score_class(p);
  const int32_t fp8_rows = most_fp8_rows(p, shape, scores);
  // The kernel of a sequence must not depend on the rest of an invariant batch.
  if (!choice.may_split()) return fp8_rows > 0 ? fp8_rows : kShortRows;
  if (shape.dtype == DType::kF8E4M3) return kShortRows;  // not measured
  if (decodes_in_row_tiles(p, shape, tokens, num_sms, choice)) return 0;
  // Decoding beside prompts.
  if (p.max_seqlen_q > kShortRows) return fp8_rows > 0 ? fp8_rows : kFewRows;
  const bool is_plain = scores == ScoreClass::kPlain && p.functor.type == nullptr;
  if (p.max_seqlen_q * p.group <= kWarpRows) {
    const bool are_wide = shape.depth_vo > 128 && is_plain && tokens == LoadKind::kTma;
    return are_wide && wants_wide_tokens(p, num_sms) ? 0 : kShortRows;
  }
  const PackedRows packed = PackedRows::of(p.group, kRows);
  const TileConfig tile = tile_of(shape, RowKind::kTokens, ScoreClass::kPlain, tokens);
  const auto waves = [&](int64_t row_tiles) {
    const int32_t key_tiles = core::ceil_div(kernels::max_visible_keys(p, p.max_seqlen_q), tile.BN);
    return static_cast<double>(p.batch * row_tiles * key_tiles) / num_sms;
  };
  // Those of general scores have one head, whose tile `tile` is not.
  const int32_t heads = scores == ScoreClass::kPlain ? packing_of(p, tile, num_sms).heads : 1;
  const int64_t token_tiles = int64_t{p.num_q_heads / heads} *
                              core::ceil_div(p.max_seqlen_q, tile.num_consumers * (kRows / heads));
  const double tile_time = tokens == LoadKind::kTmaWiden ? 1.5
                           : shape.depth_qk <= 64        ? 2
                           : shape.depth_qk <= 192       ? 2.5
                                                         : 3.5;
  const int64_t packed_tiles =
      int64_t{p.num_kv_heads} * packed.head_tiles * core::ceil_div(p.max_seqlen_q, packed.tokens);
  const bool is_split = 2 * p.batch * packed_tiles <= num_sms;
  const int32_t rows = is_split ? std::min(p.max_seqlen_q * p.group, int32_t{kRows}) : 0;
  const int64_t most_splits = core::ceil_div(kernels::max_visible_keys(p, p.max_seqlen_q),
                                             tile_of(shape, RowKind::kPacked, scores).BN);
  const int64_t splits = std::min(num_sms / (p.batch * packed_tiles), most_splits);
  const auto chains = static_cast<double>(rows * core::ceil_div(splits, kSplitsAtOnce));
  const double of_packed = kPackedCost + tile_time * waves(packed_tiles) + kMergeCost * chains;
  return kTokensCost + waves(token_tiles) < of_packed ? kWarpRows / p.group : kShortRows;
}

// Decoding beside prompts in one launch: some CTAs read the keys of decoding sequences from DRAM
// while the others multiply. Nothing: not of this call. Measured, README.md.
std::optional<Launch> mixed_launch(const Problem& p, const Shape& shape, LoadKind tokens,
                                   int32_t num_sms, const ScheduleChoice& choice) {
  const bool is_plain = kernels::score_class(p) == ScoreClass::kPlain && p.functor.type == nullptr;
  const TileConfig tile = tile_of(shape, RowKind::kTokens, ScoreClass::kPlain, tokens);
  const bool may_choose =
      choice.is_automatic() && choice.num_kv_splits == 0 && !choice.is_batch_invariant;
  if (!is_plain || !may_choose || !tile.may_decode() || p.group > kRows ||
      (kRows % p.group != 0 && !tile.may_have_empty_rows())) {
    return std::nullopt;
  }
  const int32_t decode_rows = std::min(kRows / p.group, kFewRows);
  if (p.max_seqlen_q <= kShortRows || !kernels::may_have_short_rows(p, decode_rows, false) ||
      decodes_in_row_tiles(p, shape, tokens, num_sms, choice)) {
    return std::nullopt;
  }
  // Windows: little to read, and row tiles of several heads are slower (packing_of).
  if (kernels::max_visible_keys(p, 1) < p.max_seqlen_kv_bound) return std::nullopt;
  Launch launch{.is_mixed = true, .ctas = num_sms, .heads = p.group};
  if (!grid_of(p, tile, launch).is_bisected()) return std::nullopt;
  launch.max_rows = decode_rows;
  launch.min_rows = decode_rows + 1;
  return launch;
}

// Slots of partial results, each of tile.num_consumers * 64 rows.
int64_t num_slots(const Problem& p, const TileConfig& tile, const Launch& launch, bool splits) {
  if (!splits) return 0;
  if (launch.rows == RowKind::kPacked) return launch.ctas > 1 ? 2 * int64_t{launch.ctas} : 0;
  if (launch.is_mixed) {
    return kernels::decode_slots(launch.ctas) + kernels::prompt_slots(launch.ctas);
  }
  const schedule::TileGrid grid = grid_of(p, tile, launch);
  if (tile.has_equal_shares) return int64_t{grid.num_tiles()} + launch.ctas;
  return launch.num_splits > 1 ? grid.size() - launch.num_whole : 0;
}

// (row, query head) pairs that a plan with partial results may merge.
int64_t num_split_rows(const Problem& p, const TileConfig& tile, const Launch& launch) {
  const int64_t all = total_rows(p) * p.num_q_heads;
  if (launch.rows == RowKind::kPacked || launch.is_mixed) return all;
  const int64_t tiles = grid_of(p, tile, launch).num_tiles() - launch.num_whole;
  return std::min(all, tiles * std::min(tile.tile_rows(), p.max_seqlen_q * launch.heads));
}

void size_workspace(const Problem& p, LaunchPlan& plan) {
  for (int32_t i = 0; i < plan.num_launches; ++i) {
    const Launch& launch = plan.launches[i];
    const TileConfig tile = tile_of(*plan.shape, launch.rows, launch.scores, launch.load);
    const int64_t blocks =
        num_slots(p, tile, launch, !plan.is_batch_invariant) * tile.num_consumers;
    plan.split.hold(blocks, tile.block_rows, tile.depth_vo);
    if (blocks > 0) {
      plan.num_split_rows = std::max(plan.num_split_rows, num_split_rows(p, tile, launch));
    }
  }
  plan.split.finish();
  plan.zeroed_workspace_bytes = plan.split.counter_bytes;
  plan.workspace_bytes = plan.split.bytes();
}

}  // namespace

core::Fit fit(const Shape& shape, const Problem& p, const Options& options, std::string* reason) {
  using core::Fit;
  Fit fit = kernels::fit_of(p, shape.dtype, shape.depth_qk, shape.depth_vo, true, reason);
  if (fit != Fit::kServes) return fit;
  fit = kernels::fit_of_schedule(options, {Schedule::kQueue, Schedule::kStreamK}, reason);
  if (fit != Fit::kServes) return fit;
  const ScoreClass scores = kernels::score_class(p);
  if (shape.dtype == DType::kF8E4M3 && !is_kv_by_tma(p, tile_of(shape, RowKind::kPacked, scores))) {
    return core::unfit(Fit::kFeatures, reason, [] {
      return "e4m3 queries need K and V that TMA can load: rows at multiples of 16 bytes, pages of "
             "8 keys or more, no left padding of pages";
    });
  }
  if (!ScheduleChoice::of(options).allows_stream_k() && total_rows(p) > 0 &&
      !tokens_load(p, shape, scores)) {
    return core::unfit(Fit::kFeatures, reason, [] {
      return "schedule queue, and KV splits by number, need Q, K and V that TMA can move";
    });
  }
  return Fit::kServes;
}

bool is_ranked_lower(const Problem& p, int32_t num_sms, const Options& options,
                     std::string* reason) {
  // A sequence's kernel must not depend on the rest of its batch, on which these bytes do.
  if (options.is_batch_invariant) return false;
  const int64_t row_bytes = int64_t{2} * (p.head_dim_qk + p.head_dim_vo) * p.num_kv_heads;
  const int64_t bytes = row_bytes * p.batch * p.max_seqlen_kv_bound;
  // Those kernels have no e4m3 queries.
  const bool is_plain = kernels::score_class(p) == ScoreClass::kPlain;
  const bool is_plain_64 = is_plain && p.head_dim_qk == 64 && p.head_dim_vo == 64;
  const bool is_measured = is_plain && p.head_dim_qk == 128 && p.head_dim_vo == 128 &&
                           (p.kv_kind == core::KVKind::kDense || kernels::has_even_pages(p, 16));
  const bool is_decoded = options.schedule == pagoda::Schedule::kAutomatic &&
                          options.num_kv_splits == 0 && kernels::kv_buffer::is_decode_call(p);
  const int64_t row_tiles = int64_t{p.batch} * p.num_kv_heads;
  const bool has_few_bytes = bytes <= kSmallDecodeBytes;
  bool is_faster_there = has_few_bytes;
  if (p.head_dim_qk <= 64) {
    is_faster_there = is_plain_64;
  } else if (is_plain && (p.head_dim_qk != 128 || p.head_dim_vo != 128)) {
    is_faster_there = false;  // there are no kernels for decoding alone
  } else if (is_measured && p.max_seqlen_q > 1 && !is_decoded) {
    is_faster_there = row_tiles > num_sms || (has_few_bytes && !is_one_each(row_tiles, num_sms));
  } else if (is_measured && row_tiles <= kernels::kv_buffer::kMostDecodeRowTiles) {
    const int32_t fewest_ctas = kernels::kv_buffer::decode_occupancy(p.head_dim_qk).fewest;
    is_faster_there =
        has_few_bytes || row_tiles <= int64_t{num_sms} * fewest_ctas ||
        kernels::kv_buffer::unsplit_ctas_per_sm(row_tiles, p.head_dim_qk, num_sms) > 0;
  }
  if (p.q.dtype == DType::kF8E4M3 || p.k.dtype != p.q.dtype || p.head_dim_qk > 128 ||
      p.head_dim_vo > 128 || int64_t{p.group} * p.max_seqlen_q > kWarpRows || !is_faster_there ||
      !kernels::has_aligned_kv(p)) {
    return false;
  }
  if (reason != nullptr) {
    *reason = std::to_string(p.group * p.max_seqlen_q) + " query rows of a KV head, " +
              std::to_string(row_tiles) + " KV heads and " + std::to_string((bytes >> 20) + 1) +
              " MiB of keys and values: faster by cp.async";
  }
  return true;
}

std::unique_ptr<LaunchPlan> make_plan(const Shape& shape, const Problem& p, int32_t num_sms,
                                      const Options& options) {
  const ScheduleChoice choice = ScheduleChoice::of(options);
  auto plan = std::make_unique<LaunchPlan>();
  plan->shape = &shape;
  plan->is_batch_invariant = !choice.may_split();
  if (total_rows(p) == 0) return plan;  // nothing to write
  const ScoreClass scores = kernels::score_class(p);
  const std::optional<LoadKind> tokens = tokens_load(p, shape, scores);
  const int32_t most_packed = tokens ? short_rows(p, shape, *tokens, num_sms, choice) : kShortRows;
  const bool wants_tokens = p.max_seqlen_q > most_packed || !choice.allows_stream_k();
  const bool has_tokens = choice.allows_tiles() && wants_tokens && tokens;
  const bool has_packed =
      choice.allows_stream_k() &&
      (!has_tokens || kernels::may_have_short_rows(p, most_packed, plan->is_batch_invariant));
  const auto add = [&plan](const Launch& launch) {
    plan->launches[plan->num_launches++] = launch;
    plan->num_work_items += launch.ctas;
  };
  const std::optional<Launch> mixed =
      tokens ? mixed_launch(p, shape, *tokens, num_sms, choice) : std::nullopt;
  if (mixed) {
    add(*mixed);
    size_workspace(p, *plan);
    return plan;
  }
  if (has_packed) {
    // Of the sequences that the launch serves, in an invariant batch of those that it might.
    int32_t most_rows = has_tokens ? most_packed : p.max_seqlen_q;
    if (plan->is_batch_invariant) {
      most_rows = choice.allows_tiles() && tokens ? most_packed : INT32_MAX;
    }
    const LoadKind load = packed_load(p, shape, scores, most_rows);
    Launch launch = packed_launch(p, shape, scores, load, num_sms);
    if (has_tokens) launch.max_rows = most_packed;
    add(launch);
  }
  if (has_tokens) {
    Launch launch = tokens_launch(p, shape, scores, *tokens, num_sms, choice);
    launch.min_rows = plan->num_launches > 0 ? most_packed + 1 : 1;
    add(launch);
  }
  size_workspace(p, *plan);
  return plan;
}

kernels::LaunchArguments make_arguments(const LaunchPlan& plan, const Launch& launch,
                                        const Problem& p, std::span<std::byte> workspace) {
  const TileConfig tile = tile_of(*plan.shape, launch.rows, launch.scores, launch.load);
  kernels::LaunchArguments result;
  kernels::AttentionArguments& a = result.arguments;
  kernels::set_call(p, a);
  a.is_batch_invariant = plan.is_batch_invariant;
  a.min_rows = launch.min_rows;
  a.max_rows = launch.max_rows;
  plan.split.set(workspace, a);
  if (launch.rows != RowKind::kPacked) {
    const schedule::TileGrid grid = grid_of(p, tile, launch);
    a.grid = grid;
    a.is_mixed = launch.is_mixed;
    a.is_merge_shared =
        tile.may_share_merge() && !launch.is_mixed && kernels::shares_merge(grid, launch.ctas);
    const int32_t tokens = kRows / launch.heads;
    a.row_block = {launch.heads, tokens, arch::Divisor(launch.heads)};
    result.q = q_map(p, tile, launch.heads);
    result.out =
        kernels::rows_map(p, p.out, p.head_dim_vo, launch.heads, tokens, tile.out_swizzle());
    a.is_out_by_tma = kernels::stores_by_tma(p, result.out);
    if (!a.is_out_by_tma) result.out.rank = 0;
  } else {  // row tiles of tokens keep the normal policy, with which they were measured
    // Evict first is 3 to 5 % slower in decoding: decision 0030.
    a.kv_eviction = kernels::kv_eviction(p, PackedRows::of(p.group, tile.block_rows),
                                         arch::Eviction::kNormal, launch.max_rows);
  }
  if (launch.load != LoadKind::kGather) {
    result.k = kernels::kv_map(p, p.k, p.head_dim_qk, tile.BN, tile.loaded_swizzle());
    result.v = kernels::kv_map(p, p.v, p.head_dim_vo, tile.BN, tile.loaded_swizzle());
  }
  return result;
}

}  // namespace pagoda::mha_sm90
