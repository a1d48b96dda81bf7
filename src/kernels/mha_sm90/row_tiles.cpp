// Chooses among the kinds of row tiles of tokens: those of RowKind but kPacked and kMixedTokens.
#include "kernels/mha_sm90/row_tiles.hpp"

#include <algorithm>
#include <cmath>

#include "core/int_math.hpp"
#include "kernels/common/call_arguments.hpp"
#include "kernels/mha_sm90/call_tiles.hpp"
#include "kernels/mha_sm90/head_packing.hpp"

namespace pagoda::mha_sm90 {
namespace {

using core::Problem;
using kernels::ScheduleChoice;
using kernels::total_rows;

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

// Row tiles of a kind, partly filled ones included.
int32_t num_row_tiles(const Problem& p, const Shape& shape, RowKind rows, int32_t num_sms) {
  return packing_of(p, shape, rows, num_sms).num_tiles;
}

// How many row tiles are partly filled is known only where all sequences are as long.
bool has_equal_lengths(const Problem& p) {
  return total_rows(p) == int64_t{p.batch} * p.max_seqlen_q;
}

// The time of a sequence's row tiles, of which the last one may have rows for some consumers only,
// as a part of what it would be if all had. Two of three consumers take as long as the row tile of
// two (kTallTime below), one of two 0.65, measured; one of three: not measured by itself.
double filled_part(const Problem& p, const TileConfig& tile, int32_t heads) {
  constexpr double kOfTwo[] = {0.65, 1}, kOfThree[] = {0.5, 0.72, 1};
  const int32_t of_consumer = kRows / heads;  // tokens
  const int32_t of_tile = tile.num_consumers * of_consumer;
  const int32_t tiles = core::ceil_div(p.max_seqlen_q, of_tile);
  const int32_t left = p.max_seqlen_q - (tiles - 1) * of_tile;
  const int32_t last = core::ceil_div(left, of_consumer) - 1;
  return (tiles - 1 + (tile.num_consumers == 3 ? kOfThree[last] : kOfTwo[last])) / tiles;
}

// Keys, at head dim 128: of a KV tile, and so few that more calls are faster in short row tiles.
constexpr int32_t kOneTile = 128, kFewTiles = 192;

// At head dim 128, up to 320 keys: where short row tiles leave fewer rows empty, as each row of
// theirs takes longer, but for one KV tile of 64 keys. Of more keys than a tile of 128 they skip
// more under a causal mask. Measured, notes/row_tiles.md.
bool wants_short_rows_128(const Problem& p, const Shape& shape, int32_t num_sms, bool is_half) {
  constexpr int32_t kOneShortTile = 64;
  const int32_t keys = kernels::max_visible_keys(p, 1);
  if (is_half && keys > kOneTile) return true;
  const Packing packing = packing_of(p, shape, RowKind::kShortTokens, num_sms);
  // Few row tiles have a multiprocessor each, and smaller ones are done sooner.
  if (keys <= kOneTile && packing.num_tiles <= num_sms) return true;
  if (!has_equal_lengths(p)) return is_half;
  // Of several heads a row tile has fewer tokens, so that more of them see few keys.
  const bool is_packed = packing.heads > 1;
  const double row_time = keys <= kOneShortTile            ? 0.9
                          : is_packed && keys <= kFewTiles ? 1
                          : is_half                        ? 1.04
                          : keys <= kFewTiles              ? 1.06
                                                           : 1.12;
  const auto rows = [&](RowKind kind, int32_t row_tiles) {
    return static_cast<double>(row_tiles) * tile_of(shape, kind, ScoreClass::kPlain).tile_rows();
  };
  const int32_t others = num_row_tiles(p, shape, RowKind::kTokens, num_sms);
  return row_time * rows(RowKind::kShortTokens, packing.num_tiles) <=
         rows(RowKind::kTokens, others);
}

// Short row tiles: where row tiles see few keys, all of them or, where they are many, on average.
// Measured, notes/row_tiles.md.
bool wants_short_rows(const Problem& p, const Shape& shape, int32_t num_sms) {
  constexpr int32_t kWaves = 2, kFewestKeys = 320;
  constexpr double kShortWave = 4 / 3.0, kMostWaves = 0.8;
  const TileConfig tile = tile_of(shape, RowKind::kShortTokens, ScoreClass::kPlain);
  if (!is_kv_by_tma(p, tile)) return false;
  const int32_t keys = kernels::max_visible_keys(p, 1);
  const schedule::TileGrid grid = grid_of(p, tile, Launch{});
  const bool is_half = sees_half(p, grid);
  if (shape.depth_qk == 128) {
    return keys <= kFewestKeys && wants_short_rows_128(p, shape, num_sms, is_half);
  }
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

// kTokens, kStreamKTokens or kGroupTokens, and the time of all row tiles by the model of kv_splits;
// of shapes that have kTokens alone of these no time.
struct TokensTime {
  RowKind rows = RowKind::kTokens;
  double time = 0;
};

// Of e4m3 queries: one head a row tile or several. Measured, notes/fp8.md.
TokensTime one_or_several_heads(const Problem& p, const Shape& shape, int32_t num_sms) {
  constexpr double kGroupTime = 1.03;  // of a row tile, in row tiles of kTokens
  const Packing one = packing_of(p, shape, RowKind::kTokens, num_sms);
  // With 256 columns those of several heads have one consumer, for few tokens: a second one would
  // have no rows.
  if (shape.depth_vo == 256) {
    return {p.max_seqlen_q <= kRows ? RowKind::kGroupTokens : RowKind::kTokens, one.time};
  }
  const Packing several = packing_of(p, shape, RowKind::kGroupTokens, num_sms);
  const double time = kGroupTime * several.time;
  if (several.heads > 1 && time < one.time) return {RowKind::kGroupTokens, time};
  return {RowKind::kTokens, one.time};
}

// Tokens that CTAs draw, or of which all CTAs have equal shares.
TokensTime drawn_or_shared(const Problem& p, const Shape& shape, int32_t num_sms,
                           const ScheduleChoice& choice) {
  // With a smaller gain by the model shares were slower in as many calls as faster
  // (notes/split_rows.md).
  constexpr double kLeastGain = 0.97;
  if (has_group_tokens(shape)) return one_or_several_heads(p, shape, num_sms);
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

// Row tiles of one consumer: where those of more leave multiprocessors idle. Under a causal mask
// also a few more row tiles than multiprocessors, whose longest come first. Row tiles of many keys
// are rather split. Measured, notes/row_tiles.md.
bool wants_single_rows(const Problem& p, const Shape& shape, int32_t num_sms,
                       const TokensTime& others) {
  const TileConfig tile = tile_of(shape, RowKind::kSingleTokens, ScoreClass::kPlain);
  if (!is_kv_by_tma(p, tile)) return false;
  const int64_t row_tiles = full_tiles(p, tile);
  const int32_t keys = kernels::max_visible_keys(p, 1);
  const bool is_half = sees_half(p, grid_of(p, tile, Launch{}));
  const bool is_one_wave = row_tiles <= num_sms;
  // Short row tiles or larger ones are done sooner.
  if (shape.depth_qk == 128 && keys <= (is_half ? kFewTiles : kOneTile)) return false;
  const auto has_second_wave = [&] {
    return has_equal_lengths(p) &&
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
  // are three times as many, at 128 and 256 0.9 and two thirds of the time of those of two.
  const auto are_faster = [&] {
    const double most_time = shape.depth_qk == 64 ? 1 : shape.depth_qk == 128 ? 1.12 : 1.45;
    return packing_of(p, shape, RowKind::kSingleTokens, num_sms).splits.time <
           most_time * others.time;
  };
  switch (shape.depth_qk) {
    case 64:
      if (2 * row_tiles <= int64_t{3} * num_sms && keys <= 1024) return true;
      if (is_one_wave && keys <= 1280) return true;
      if (2 * row_tiles <= num_sms && keys <= 4096) return true;
      return 3 * row_tiles <= num_sms && are_faster();
    case 128:
      if (!is_quarter_wave) return is_one_wave && are_faster();
      // Or so few rows that those of more consumers are as many.
      return keys <= 8192 || num_row_tiles(p, shape, RowKind::kSingleTokens, num_sms) ==
                                 num_row_tiles(p, shape, RowKind::kTokens, num_sms);
    default:
      if (p.max_seqlen_q > kRows && has_second_wave()) return false;
      return is_one_wave && keys <= (is_quarter_wave ? 8192 : 4096) && are_faster();
  }
}

// Tall row tiles take less time a row, but are fewer: few of them leave multiprocessors idle.
// Measured, notes/row_tiles.md.
bool wants_tall_rows(const Problem& p, const Shape& shape, int32_t num_sms,
                     const TokensTime& others) {
  constexpr double kTallTime = 1.5 * 0.93;  // of a tall row tile, in row tiles of two consumers
  constexpr double kLeastGain = 0.97;
  constexpr int32_t kFewestRows = 256;  // of a sequence
  const TileConfig tall = tile_of(shape, RowKind::kTallTokens, ScoreClass::kPlain);
  const Packing packing = packing_of(p, tall, num_sms);
  if (!is_kv_by_tma(p, tall)) return false;
  if (has_group_tokens(shape) && !are_prompts(p)) {
    return kTallTime * packing.time < kLeastGain * others.time;
  }
  const TileConfig other = tile_of(shape, RowKind::kTokens, ScoreClass::kPlain);
  const int32_t rows = p.max_seqlen_q * packing.heads;
  if (rows < kFewestRows) {
    // One tall row tile instead of two.
    const bool is_one_tile =
        rows > other.tile_rows() && rows <= tall.tile_rows() && has_equal_lengths(p);
    if (!is_one_tile) return false;
    const kernels::KVSplits splits = packing_of(p, other, num_sms).splits;
    // Split, all of them run at once, and the whole ones are waited for.
    const double of_mean =
        splits.num_splits > 1 ? kLeastGain : filled_part(p, other, packing.heads);
    return kTallTime * packing.splits.time < of_mean * splits.time;
  }
  if (others.rows == RowKind::kStreamKTokens) {
    return kTallTime * packing.splits.time < others.time;
  }
  if (!has_equal_lengths(p) || !are_prompts(p)) {  // not measured
    return kTallTime * makespan(p, tall, num_sms) < kLeastGain * makespan(p, other, num_sms);
  }
  // Of a causal prompt the longest row tiles come first. This part of one is lost at the end.
  constexpr double kLostAtEnd = 0.4, kLeastGainByTiles = 0.975;
  const bool is_half = sees_half(p, grid_of(p, other, Launch{}));
  const auto time = [&](const TileConfig& tile, const Packing& of) {
    const int32_t key_tiles = core::ceil_div(p.max_seqlen_kv_bound, tile.BN);
    return of.time * filled_part(p, tile, of.heads) + (is_half ? kLostAtEnd * key_tiles : 0);
  };
  const double of_other = time(other, packing_of(p, other, num_sms));
  return kTallTime * time(tall, packing) < kLeastGainByTiles * of_other;
}

// Of 16-bit queries of unequal lengths: at head dim 64 the row tiles that are done first, by the
// model of splits and measured times of a KV tile; else those of kTokens. Measured,
// notes/split_rows.md.
RowKind kind_of_unequal(const Problem& p, const Shape& shape, int32_t num_sms) {
  constexpr double kShortTime = 0.65, kSingleTime = 0.9;
  if (shape.depth_qk != 64) return RowKind::kTokens;
  RowKind best = RowKind::kTokens;
  double least = packing_of(p, shape, best, num_sms).splits.time;
  const auto consider = [&](RowKind rows, double time_of_tile) {
    if (!is_kv_by_tma(p, tile_of(shape, rows, ScoreClass::kPlain))) return;
    const double time = time_of_tile * packing_of(p, shape, rows, num_sms).splits.time;
    if (time >= least) return;
    best = rows;
    least = time;
  };
  consider(RowKind::kShortTokens, kShortTime);
  consider(RowKind::kSingleTokens, kSingleTime);
  return best;
}

// Which row tiles of tokens a call gets.
RowKind tokens_kind(const Problem& p, const Shape& shape, ScoreClass scores, LoadKind load,
                    int32_t num_sms, const ScheduleChoice& choice) {
  // A sequence's kernel must not depend on the rest of an invariant batch.
  if (scores != ScoreClass::kPlain || load != LoadKind::kTma || p.functor.type != nullptr ||
      !choice.may_split()) {
    return RowKind::kTokens;
  }
  if (kernels::has_unequal_lengths(p) && !has_group_tokens(shape)) {
    return kind_of_unequal(p, shape, num_sms);
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

}  // namespace

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
    if (tile.may_have_least_tiles()) {
      // Of sequences with fewer keys, fewer splits than the longest has.
      const int32_t keys = kernels::max_visible_keys(p, tile.num_consumers * kRows / launch.heads);
      launch.least_split_tiles = core::ceil_div(core::ceil_div(keys, tile.BN), launch.num_splits);
    }
  }
  launch.ctas =
      tile.has_equal_shares ? most_ctas : std::min(grid_of(p, tile, launch).size(), most_ctas);
  return launch;
}

}  // namespace pagoda::mha_sm90
