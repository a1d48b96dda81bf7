// Which sequences of a call are packed, which are row tiles of tokens, and whether one launch
// serves both.
#include "kernels/mha_sm90/division.hpp"

#include <algorithm>
#include <cassert>

#include "core/int_math.hpp"
#include "kernels/common/call_arguments.hpp"
#include "kernels/mha_sm90/call_tiles.hpp"
#include "kernels/mha_sm90/head_packing.hpp"
#include "kernels/mha_sm90/schedule.hpp"

namespace pagoda::mha_sm90 {
namespace {

using core::Problem;
using kernels::kShortRows;
using kernels::ScheduleChoice;

// Sequences of up to so many query rows beside prompts are decoding.
constexpr int32_t kMostDecodeRows = 16;

bool has_plain_scores(const Problem& p) {
  return kernels::score_class(p) == ScoreClass::kPlain && p.functor.type == nullptr;
}

// Whether the mask hides some of the longest sequence's keys from every row.
bool has_window(const Problem& p) {
  return kernels::max_visible_keys(p, 1) < p.max_seqlen_kv_bound;
}

// Whether the plan may choose kernels and splits.
bool may_choose(const ScheduleChoice& choice) {
  return choice.is_automatic() && choice.num_kv_splits == 0 && choice.may_split();
}

// Whether one launch may serve prompts and, in row tiles with all query heads of a KV head,
// decoding sequences beside them. The kernel of a sequence must not depend on the rest of an
// invariant batch.
bool may_decode_beside_prompts(const Problem& p, const Shape& shape, LoadKind tokens,
                               const ScheduleChoice& choice) {
  return may_choose(choice) && has_plain_scores(p) && has_mixed_tokens(shape) &&
         tokens == LoadKind::kTma && p.max_seqlen_q > kShortRows && p.group <= kRows;
}

// Whether the longest prompt has so little work, by the bounds, that all sequences should be row
// tiles of one grid. A mixed launch divides the work by all lengths before it requests Q, which is
// worth it where products may take as long as the keys of decoding sequences do to load. Where
// query heads have a KV head each, row tiles of decoding have one row either way. Measured,
// notes/split_rows.md.
bool has_short_prompts(const Problem& p, const TileConfig& tile, int32_t num_sms) {
  constexpr int64_t kMostWork = 90;  // KV tiles of a multiprocessor, of the longest prompt
  if (p.group == 1) return true;
  const int64_t row_tiles =
      int64_t{core::ceil_div(p.max_seqlen_q * p.group, tile.tile_rows())} * p.num_kv_heads;
  const int32_t keys = kernels::max_visible_keys(p, p.max_seqlen_q);
  return row_tiles * core::ceil_div(keys, tile.BN) < kMostWork * num_sms;
}

// Whether sequences of a few rows beside longer ones are row tiles of tokens like those, instead of
// packed rows in a launch of their own, for whose end the other launch would wait. Kernels whose
// row tiles have one query head read the keys of a sequence once for each: those are for few rows
// only. Measured, notes/split_rows.md.
bool wants_row_tiles(const Problem& p, const Shape& shape, LoadKind tokens, int32_t num_sms,
                     const ScheduleChoice& choice) {
  if (!may_choose(choice) || p.functor.type != nullptr) return false;
  const ScoreClass scores = tokens_scores(p);
  const bool has_one_head =
      scores == ScoreClass::kGeneral || (shape.dtype == DType::kF8E4M3 && shape.depth_vo == 256);
  if (has_one_head && p.max_seqlen_q > kShortRows) return false;
  return has_short_prompts(p, tile_of(shape, RowKind::kTokens, scores, tokens), num_sms);
}

// In a mixed launch sequences of up to so many query rows are decoded: a block of a consumer's row
// tile holds them with all query heads of a KV head.
int32_t most_decode_rows(const Problem& p) { return std::min(kRows / p.group, kMostDecodeRows); }

// Whether a mixed launch serves them: some CTAs read the keys of decoding sequences from DRAM while
// the others multiply. Measured, notes/decoding_beside_prompts.md.
bool wants_mixed_launch(const Problem& p, const TileConfig& tile, const schedule::TileGrid& grid) {
  if (kRows % p.group != 0 && !tile.may_have_empty_rows()) return false;
  // Windows: little to read.
  return !has_window(p) && grid.is_bisected() &&
         kernels::may_have_short_rows(p, most_decode_rows(p), false);
}

// Query rows of a sequence up to which a call over an e4m3 cache has a packed kernel of its own; 0:
// it has none. Longer sequences beside those are row tiles of tokens.
int32_t most_fp8_rows(const Problem& p, const Shape& shape, ScoreClass scores) {
  const int32_t most = kWarpRows / p.group;
  return most > 0 && packed_load(p, shape, scores, most) == LoadKind::kTmaFp8 ? most : 0;
}

// Up to kWarpRows rows of a KV head, with O of 256 columns. Row tiles of tokens begin sooner than
// packed ones, as they need no search for the CTA's start. But a few packed rows are merged sooner,
// and many keys of one token are shared evenly by packed row tiles only. Measured,
// notes/packed_rows.md.
bool wants_wide_tokens(const Problem& p, int32_t num_sms) {
  constexpr int32_t kUnsplitKeys = 256, kMostKeysOfOneToken = 2048, kRowsMergedSooner = 4;
  const int32_t keys = kernels::max_visible_keys(p, p.max_seqlen_q);
  if (keys <= kUnsplitKeys) return true;
  const bool is_one_token = p.max_seqlen_q == 1;
  if (!is_one_token && p.max_seqlen_q * p.group > kRowsMergedSooner) return true;
  const bool has_few_splits = 5 * int64_t{p.batch} * p.num_kv_heads >= num_sms;
  return has_few_splits && (!is_one_token || keys <= kMostKeysOfOneToken);
}

// Up to kWarpRows rows of a KV head over an e4m3 cache of up to so many bytes: row tiles of tokens,
// which begin sooner and whose splits all CTAs merge. Of more, packed rows move them faster.
// Measured, notes/fp8.md.
constexpr int64_t kFewFp8Bytes = int64_t{64} << 20;
bool wants_widened_tokens(const Problem& p, const Shape& shape) {
  return shape.depth_qk <= 128 && has_plain_scores(p) && visible_kv_bytes(p) <= kFewFp8Bytes;
}

// Query heads of a row tile of tokens, for are_tokens_faster. Few rows over more keys of e4m3 than
// those of wants_widened_tokens are left to packed rows, as measured with bf16 queries
// (notes/fp8.md). Plain ones of head dims 64 and 128 mha_sm90_decode serves.
int32_t heads_of_tokens(const Problem& p, const TileConfig& tile, int32_t num_sms) {
  const Packing packing = packing_of(p, tile, num_sms);
  const bool has_few_rows = p.max_seqlen_q * p.group <= kWarpRows;
  const bool is_large = tile.element_bytes == 1 && visible_kv_bytes(p) > kFewFp8Bytes;
  return is_large && has_few_rows ? 1 : packing.heads;
}

// Whether row tiles of tokens are done before packed ones, by a model in the time of a KV tile of a
// row tile of tokens. Packed rows load each key once for all query heads of a KV head, but a KV
// tile of theirs takes longer, and where they are split the rows are merged one after the other.
// Measured, notes/packed_rows.md.
bool are_tokens_faster(const Problem& p, const Shape& shape, ScoreClass scores, LoadKind tokens,
                       int32_t num_sms) {
  constexpr double kTokensCost = 7, kPackedCost = 10;
  constexpr double kMergeCost = 0.4;  // of a row and up to kSplitsAtOnce splits (merge_row)
  constexpr int64_t kSplitsAtOnce = 16;
  const PackedRows packed = PackedRows::of(p.group, kRows);
  const bool is_e4m3 = shape.dtype == DType::kF8E4M3;
  const RowKind kind = is_e4m3 ? RowKind::kGroupTokens : RowKind::kTokens;
  const TileConfig tile = tile_of(shape, kind, ScoreClass::kPlain, tokens);
  const int32_t keys = kernels::max_visible_keys(p, p.max_seqlen_q);
  const auto waves = [&](int64_t row_tiles) {
    return static_cast<double>(p.batch * row_tiles * core::ceil_div(keys, tile.BN)) / num_sms;
  };
  // Those of general scores have one head, whose tile `tile` is not.
  const int32_t heads = scores == ScoreClass::kPlain ? heads_of_tokens(p, tile, num_sms) : 1;
  const int64_t token_tiles = int64_t{p.num_q_heads / heads} *
                              core::ceil_div(p.max_seqlen_q, tile.num_consumers * (kRows / heads));
  const double tile_time = is_e4m3                         ? 1.35
                           : tokens == LoadKind::kTmaWiden ? 1.5
                           : shape.depth_qk <= 64          ? 2
                           : shape.depth_qk <= 192         ? 2.5
                                                           : 3.5;
  const int64_t packed_tiles =
      int64_t{p.num_kv_heads} * packed.head_tiles * core::ceil_div(p.max_seqlen_q, packed.tokens);
  const bool is_split = 2 * p.batch * packed_tiles <= num_sms;
  const int32_t rows = is_split ? std::min(p.max_seqlen_q * p.group, int32_t{kRows}) : 0;
  const int64_t most_splits = core::ceil_div(keys, tile_of(shape, RowKind::kPacked, scores).BN);
  const int64_t splits = std::min(num_sms / (p.batch * packed_tiles), most_splits);
  const auto chains = static_cast<double>(rows * core::ceil_div(splits, kSplitsAtOnce));
  const double of_packed = kPackedCost + tile_time * waves(packed_tiles) + kMergeCost * chains;
  return kTokensCost + waves(token_tiles) < of_packed;
}

// Sequences of up to so many query rows are packed, longer ones are row tiles of tokens, unless one
// launch serves prompts and decoding. Packed rows with a soft cap have general scores, which take
// longer.
int32_t most_packed_rows(const Problem& p, const Shape& shape, LoadKind tokens, int32_t num_sms,
                         const ScheduleChoice& choice) {
  const ScoreClass scores = kernels::score_class(p);
  const int32_t fp8_rows = most_fp8_rows(p, shape, scores);
  // The kernel of a sequence must not depend on the rest of an invariant batch.
  if (!choice.may_split()) return fp8_rows > 0 ? fp8_rows : kShortRows;
  if (shape.dtype == DType::kF8E4M3) {
    // Longer sequences beside short ones: not measured.
    const bool may_be_tokens = p.max_seqlen_q <= kShortRows;
    return may_be_tokens && are_tokens_faster(p, shape, scores, tokens, num_sms) ? 0 : kShortRows;
  }
  // Decoding beside prompts, in a launch of its own.
  if (p.max_seqlen_q > kShortRows) return fp8_rows > 0 ? fp8_rows : kMostDecodeRows;
  if (p.max_seqlen_q * p.group <= kWarpRows) {
    if (tokens == LoadKind::kTmaWiden && wants_widened_tokens(p, shape)) return 0;
    const bool are_wide = shape.depth_vo > 128 && has_plain_scores(p) && tokens == LoadKind::kTma;
    return are_wide && wants_wide_tokens(p, num_sms) ? 0 : kShortRows;
  }
  const bool prefers_tokens =
      kernels::is_capped(p) || are_tokens_faster(p, shape, scores, tokens, num_sms);
  return prefers_tokens ? kWarpRows / p.group : kShortRows;
}

}  // namespace

Division divide_sequences(const Problem& p, const Shape& shape, std::optional<LoadKind> tokens,
                          int32_t num_sms, const ScheduleChoice& choice) {
  if (!tokens || !choice.allows_tiles()) {
    assert(choice.allows_stream_k() && "fit() requires row tiles of tokens otherwise");
    return {LaunchSet::kPacked};
  }
  if (may_decode_beside_prompts(p, shape, *tokens, choice)) {
    const TileConfig tile = tile_of(shape, RowKind::kMixedTokens, ScoreClass::kPlain);
    const schedule::TileGrid grid = grid_of(p, tile, Launch{.heads = p.group});
    if (wants_mixed_launch(p, tile, grid) && !has_short_prompts(p, tile, num_sms)) {
      return {LaunchSet::kMixed, most_decode_rows(p)};
    }
  }
  if (!choice.allows_stream_k()) return {LaunchSet::kTokens, 0};
  const int32_t most_packed = most_packed_rows(p, shape, *tokens, num_sms, choice);
  if (p.max_seqlen_q <= most_packed) return {LaunchSet::kPacked, most_packed};
  if (!kernels::may_have_short_rows(p, most_packed, !choice.may_split()) ||
      wants_row_tiles(p, shape, *tokens, num_sms, choice)) {
    return {LaunchSet::kTokens, 0};
  }
  return {LaunchSet::kPackedAndTokens, most_packed};
}

}  // namespace pagoda::mha_sm90
