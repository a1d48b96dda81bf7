// MixedShares: how the CTAs of a mixed launch divide its work, decoding beside prompts. Decoding
// reads each key once and waits for memory; prompts read from L2 and multiply. So some CTAs decode
// while the others compute prompts, as many as let both end at the same time:
//
//   CTA 0 .. decode_ctas - 1   share the sequences of up to max_rows rows by a stream-K partition
//                              (stream_k.hpp), and then draw row tiles of prompts as the others do
//   the others                 start with a row tile of prompts each (grid_work.hpp), or with a
//                              split of one, where whole ones would end far apart
//
// A scheduler warp of every CTA finds the same shares, from lengths in device memory.
#pragma once

#include <cstdint>

#include "arch/quotient.hpp"
#include "arch/thread.hpp"
#include "arch/warp.hpp"
#include "core/target.hpp"
#include "kernels/common/grid_work.hpp"
#include "kernels/common/stream_k_start.hpp"

namespace pagoda::kernels {

struct MixedShares {
  int32_t decode_ctas = 0;
  int32_t decode_tiles = 0;      // KV tiles of all decoding sequences
  int32_t tiles_per_cta = 1;     // of decoding
  schedule::EntryRange prompts;  // grid entries from the first to the last prompt
  // Splits that each of these entries may have, and KV tiles of a split at most.
  int32_t prompt_splits = 1, split_tiles = 1;

  [[nodiscard]] PAGODA_DEVICE int32_t num_prompt_splits() const {
    return prompts.size() * prompt_splits;
  }
};

// Slots of partial results of a mixed launch: of decoding (stream_k.hpp), then of prompts.
PAGODA_HOST_DEVICE constexpr int32_t decode_slots(int32_t ctas) { return 2 * ctas; }
PAGODA_HOST_DEVICE constexpr int32_t prompt_slots(int32_t ctas) { return 3 * ctas; }

// Both kinds of work, in KV tiles. One of decoding takes two thirds of the time of one of prompts,
// or more where DRAM is busy; it counts as much, because decoding that ends late is waited for,
// while CTAs that end it early find prompts to compute. Measured, mha_sm90/notes.
struct MixedSums {
  // What a row tile takes besides its KV tiles, and a split of one: where memory is busy, a merge
  // takes 12 to 20 us.
  static constexpr int32_t kDecodeCost = 3, kPromptCost = 2, kSplitCost = 8;

  int32_t decode_tiles = 0, decode_row_tiles = 0;  // KV tiles of all row tiles; these
  int32_t prompt_row_tiles = 0;
  float prompt_time = 0;  // KV tiles of prompts, with kPromptCost
  // KV tiles of a row tile, at most.
  int32_t longest_decode = 0, longest_prompt = 0;
  int32_t first_prompt = INT32_MAX, past_prompt = 0;

  template <class Config>
  PAGODA_DEVICE void add(const AttentionParams& params, int32_t b) {
    const int32_t rows = params.launch_rows(b);
    if (rows <= params.max_rows) {
      const SequenceTiles tiles = sequence_tiles<Config>(params, b);
      decode_tiles += tiles.tiles();
      decode_row_tiles += tiles.row_tiles;
      longest_decode = largest(longest_decode, tiles.kv_tiles);
      return;
    }
    if (first_prompt > b) first_prompt = b;
    past_prompt = b + 1;
    const auto keys = static_cast<int32_t>(params.sequences.keys.num_keys(b));
    const mask::RowTile middle{b, keys, params.sequences.q_position(b, keys), rows / 2, 1};
    const int32_t tokens = Config::tile.num_blocks() * params.row_block.tokens;  // of a row tile
    const int32_t row_tiles = (arch::quotient(rows - 1, tokens) + 1) * params.grid.grid().num_heads;
    const int32_t kv_tiles = kv_tiles_of<Config>(params, middle).num_tiles;
    prompt_row_tiles += row_tiles;
    prompt_time += static_cast<float>(row_tiles) * static_cast<float>(kv_tiles + kPromptCost);
    longest_prompt = largest(longest_prompt, (keys + Config::tile.BN - 1) / Config::tile.BN);
  }
  PAGODA_DEVICE void add_other_lanes() {
    decode_tiles = sum_of_warp(decode_tiles);
    decode_row_tiles = sum_of_warp(decode_row_tiles);
    prompt_row_tiles = sum_of_warp(prompt_row_tiles);
    longest_decode = max_of_warp(longest_decode);
    longest_prompt = max_of_warp(longest_prompt);
    first_prompt = INT32_MAX - max_of_warp(INT32_MAX - first_prompt);
    past_prompt = max_of_warp(past_prompt);
    PAGODA_UNROLL
    for (int mask = 1; mask < 32; mask *= 2) prompt_time += arch::shuffle_xor(prompt_time, mask);
  }
  [[nodiscard]] PAGODA_DEVICE float decode_time() const {
    return static_cast<float>(decode_tiles + kDecodeCost * decode_row_tiles);
  }

 private:
  static PAGODA_DEVICE int32_t largest(int32_t a, int32_t b) { return a > b ? a : b; }
  // Of values of at least 0.
  static PAGODA_DEVICE int32_t max_of_warp(int32_t value) {
    return static_cast<int32_t>(arch::reduce_max(static_cast<uint32_t>(value)));
  }
};

// KV tiles of a CTA that decodes, of `even`, an equal share. Partial results of fewer than
// kLeastTiles cost more than they save; row tiles of fewer are not split.
PAGODA_DEVICE int32_t decode_tiles_of_cta(int32_t even, int32_t longest) {
  constexpr int32_t kLeastTiles = 16;
  const int32_t least = longest < kLeastTiles ? longest : kLeastTiles;
  return even < least ? least : even;
}

// The splits of prompts with which `prompt_ctas` CTAs are done first: the row tiles of a long
// prompt are few, and end far apart. A lane estimates the time with lane + 1 splits of the longest
// row tile, as far as there are slots for them.
PAGODA_DEVICE void set_prompt_splits(const MixedSums& sums, int32_t prompt_ctas, int32_t num_ctas,
                                     MixedShares& shares) {
  constexpr float kNever = 1e8F;  // 32 times it fits 32 bits
  if (sums.longest_prompt == 0 || shares.prompts.size() == 0) return;
  const int32_t splits = arch::lane_idx() + 1;
  const float part = 1 / static_cast<float>(splits);
  const float cost = splits > 1 ? static_cast<float>(MixedSums::kSplitCost) : 0.0F;
  const float mean = sums.prompt_time / static_cast<float>(sums.prompt_row_tiles);
  const int32_t rounds = arch::quotient(sums.prompt_row_tiles * splits - 1, prompt_ctas) + 1;
  float time = static_cast<float>(rounds) * (mean * part + cost);
  const float longest = static_cast<float>(sums.longest_prompt) * part + cost;
  if (time < longest) time = longest;
  const bool fits = splits == 1 || splits * shares.prompts.size() <= prompt_slots(num_ctas);
  if (!fits || time > kNever) time = kNever;
  // Of two with the same time the fewer splits.
  const auto key = static_cast<uint32_t>(time) * 32 + static_cast<uint32_t>(splits - 1);
  shares.prompt_splits = static_cast<int32_t>(~arch::reduce_max(~key) % 32) + 1;
  shares.split_tiles = arch::quotient(sums.longest_prompt - 1, shares.prompt_splits) + 1;
}

// By one warp; every lane gets them.
template <class Config>
PAGODA_DEVICE MixedShares mixed_shares(const AttentionParams& params,
                                       const schedule::TileDecoder& grid) {
  MixedSums sums;
  PAGODA_NO_UNROLL
  for (int32_t b = arch::lane_idx(); b < params.sequences.batch; b += 32) {
    sums.add<Config>(params, b);
  }
  sums.add_other_lanes();
  const auto num_ctas = static_cast<int32_t>(arch::grid_dim().x);
  MixedShares shares;
  shares.decode_tiles = sums.decode_tiles;
  if (sums.past_prompt > 0) shares.prompts = grid.entries_of(sums.first_prompt, sums.past_prompt);
  const float all = sums.prompt_time + sums.decode_time() + 1;
  const float share = sums.prompt_time / all * static_cast<float>(num_ctas);
  int32_t prompt_ctas = 1 + static_cast<int32_t>(share);
  const int32_t most = sums.decode_tiles > 0 ? num_ctas - 1 : num_ctas;
  if (prompt_ctas > most) prompt_ctas = most;
  set_prompt_splits(sums, prompt_ctas, num_ctas, shares);
  if (prompt_ctas > shares.num_prompt_splits()) prompt_ctas = shares.num_prompt_splits();
  shares.decode_ctas = num_ctas - prompt_ctas;
  const int32_t even =
      tiles_of_cta(sums.decode_tiles, shares.decode_ctas > 0 ? shares.decode_ctas : 1);
  shares.tiles_per_cta = decode_tiles_of_cta(even, sums.longest_decode);
  return shares;
}

// Where the CTA starts to decode; nowhere, if it does not.
template <class Config>
PAGODA_DEVICE StreamKStart decode_start(const AttentionParams& params, const MixedShares& shares) {
  const auto cta = static_cast<int32_t>(arch::block_idx().x);
  if (cta >= shares.decode_ctas) return {};
  return stream_k_start_of_warp<Config>(params, cta, shares.tiles_per_cta, shares.decode_tiles);
}

// Draws row tiles of prompts, or splits of them: the first split of all row tiles, then the second,
// so that those that multiply the same keys run at the same time, and load them from L2.
class PromptQueue {
 public:
  PAGODA_DEVICE PromptQueue(const AttentionParams& params, const schedule::TileDecoder& grid,
                            const MixedShares& shares)
      : grid_(grid),
        first_(shares.prompts.begin),
        row_tiles_(shares.prompts.size()),
        splits_(shares.prompt_splits),
        split_tiles_(shares.split_tiles),
        queue_(queue_of(params, shares)) {}

  PAGODA_DEVICE bool next(schedule::TileCoord& tile) {
    while (queue_.next()) {
      const int32_t split = arch::quotient(queue_.number(), row_tiles_);
      const int32_t row_tile = queue_.number() - split * row_tiles_;
      tile = grid_.at(first_ + row_tile);
      tile.split = split;
      tile.num_splits = splits_;
      first_slot_ = decode_slots(num_ctas()) + row_tile * splits_;
      if (tile.exists()) return true;
    }
    return false;
  }
  // Of the row tile that next() has set, which sees keys [start, end): as few as have split_tiles
  // KV tiles or less, in equal parts. All hold keys, and they are at most prompt_splits: with
  // p = ceil(t / count) <= split_tiles, ceil(t / p) is count again.
  [[nodiscard]] PAGODA_DEVICE schedule::SplitKV parts(int32_t start, int32_t end,
                                                      int32_t tile_keys) const {
    if (end <= start) return {start, end, tile_keys, 0};
    const int32_t tiles = (end - start - 1) / tile_keys + 1;
    const int32_t count = arch::quotient(tiles - 1, split_tiles_) + 1;
    const int32_t part_tiles = arch::quotient(tiles - 1, count) + 1;
    return {start, end, part_tiles * tile_keys, count};
  }
  [[nodiscard]] PAGODA_DEVICE int32_t first_slot() const { return first_slot_; }

 private:
  static PAGODA_DEVICE int32_t num_ctas() { return static_cast<int32_t>(arch::grid_dim().x); }
  static PAGODA_DEVICE schedule::NumberQueue<GridCounter> queue_of(const AttentionParams& params,
                                                                   const MixedShares& shares) {
    const int32_t numbers = shares.num_prompt_splits();
    const int32_t starters = num_ctas() - shares.decode_ctas;
    return {static_cast<int32_t>(arch::block_idx().x) - shares.decode_ctas, starters, numbers,
            GridCounter{params.grid_counter, numbers - starters + num_ctas()}};
  }

  schedule::TileDecoder grid_;
  int32_t first_, row_tiles_, splits_, split_tiles_;
  int32_t first_slot_ = 0;
  schedule::NumberQueue<GridCounter> queue_;
};

}  // namespace pagoda::kernels
