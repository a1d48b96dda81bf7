// MixedShares: how the CTAs of a mixed launch divide its work, decoding beside prompts. Decoding
// reads each key once and waits for memory; prompts read from L2 and multiply. So some CTAs decode
// while the others compute prompts, as many as let both end at the same time:
//
//   CTA 0 .. decode_ctas - 1   share the sequences of up to max_rows rows by a stream-K partition
//                              (stream_k.hpp), and then draw row tiles of prompts as the others do
//   the others                 start with a row tile of prompts each (grid_work.hpp)
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
};

// Both kinds of work, in KV tiles. One of decoding takes two thirds of the time of one of prompts,
// or more where DRAM is busy; it counts as much, because decoding that ends late is waited for,
// while CTAs that end it early find prompts to compute. Measured, mha_sm90/README.md.
struct MixedSums {
  // What a row tile takes besides its KV tiles.
  static constexpr int32_t kDecodeCost = 3, kPromptCost = 2;
  // Of a CTA: partial results of fewer KV tiles cost more than they save.
  static constexpr int32_t kLeastTiles = 16;

  int32_t decode_tiles = 0;                // KV tiles of all row tiles
  float decode_time = 0, prompt_time = 0;  // decode_tiles, and those of prompts, with their costs
  int32_t first_prompt = INT32_MAX, past_prompt = 0;

  template <class Config>
  PAGODA_DEVICE void add(const AttentionParams& params, int32_t b) {
    const int32_t rows = params.launch_rows(b);
    if (rows <= params.max_rows) {
      const SequenceTiles tiles = sequence_tiles<Config>(params, b);
      decode_tiles += tiles.tiles();
      decode_time += static_cast<float>(tiles.tiles() + kDecodeCost * tiles.row_tiles);
      return;
    }
    if (first_prompt > b) first_prompt = b;
    past_prompt = b + 1;
    const auto keys = static_cast<int32_t>(params.sequences.keys.num_keys(b));
    const mask::RowTile middle{b, keys, params.sequences.q_position(b, keys), rows / 2, 1};
    const int32_t tokens = Config::tile.num_blocks() * params.row_block.tokens;  // of a row tile
    const int32_t row_tiles = (arch::quotient(rows - 1, tokens) + 1) * params.grid.grid().num_heads;
    const int32_t kv_tiles = kv_tiles_of<Config>(params, middle).num_tiles;
    prompt_time += static_cast<float>(row_tiles) * static_cast<float>(kv_tiles + kPromptCost);
  }
  PAGODA_DEVICE void add_other_lanes() {
    decode_tiles = sum_of_warp(decode_tiles);
    PAGODA_UNROLL
    for (int mask = 1; mask < 32; mask *= 2) {
      decode_time += arch::shuffle_xor(decode_time, mask);
      prompt_time += arch::shuffle_xor(prompt_time, mask);
      const int32_t first = arch::shuffle_xor(first_prompt, mask);
      const int32_t past = arch::shuffle_xor(past_prompt, mask);
      first_prompt = first < first_prompt ? first : first_prompt;
      past_prompt = past > past_prompt ? past : past_prompt;
    }
  }
};

// By one warp; every lane gets them.
template <class Config>
PAGODA_DEVICE MixedShares mixed_shares(const AttentionParams& params,
                                       const schedule::TileDecoder& grid) {
  MixedSums sums;
  PAGODA_NO_UNROLL
  for (int32_t b = arch::lane_idx(); b < params.sequences.batch; b += 32) {
    sums.add<Config>(params, b);
  }
  arch::converge_warp();
  sums.add_other_lanes();
  const auto num_ctas = static_cast<int32_t>(arch::grid_dim().x);
  MixedShares shares;
  shares.decode_tiles = sums.decode_tiles;
  if (sums.past_prompt > 0) shares.prompts = grid.entries_of(sums.first_prompt, sums.past_prompt);
  const float all = sums.prompt_time + sums.decode_time + 1;
  const float share = sums.prompt_time / all * static_cast<float>(num_ctas);
  int32_t prompt_ctas = 1 + static_cast<int32_t>(share);
  const int32_t most = sums.decode_tiles > 0 ? num_ctas - 1 : num_ctas;
  if (prompt_ctas > most) prompt_ctas = most;
  if (prompt_ctas > shares.prompts.size()) prompt_ctas = shares.prompts.size();
  shares.decode_ctas = num_ctas - prompt_ctas;
  shares.tiles_per_cta =
      tiles_of_cta(sums.decode_tiles, shares.decode_ctas > 0 ? shares.decode_ctas : 1);
  if (shares.tiles_per_cta < MixedSums::kLeastTiles) shares.tiles_per_cta = MixedSums::kLeastTiles;
  return shares;
}

// Where the CTA starts to decode; nowhere, if it does not.
template <class Config>
PAGODA_DEVICE StreamKStart decode_start(const AttentionParams& params, const MixedShares& shares) {
  const auto cta = static_cast<int32_t>(arch::block_idx().x);
  if (cta >= shares.decode_ctas) return {};
  return stream_k_start_of_warp<Config>(params, cta, shares.tiles_per_cta, shares.decode_tiles);
}

// Draws row tiles of prompts.
PAGODA_DEVICE GridQueue prompt_queue(const AttentionParams& params,
                                     const schedule::TileDecoder& grid, const MixedShares& shares) {
  const auto num_ctas = static_cast<int32_t>(arch::grid_dim().x);
  const int32_t num_starters = num_ctas - shares.decode_ctas;
  return {grid, shares.prompts, static_cast<int32_t>(arch::block_idx().x) - shares.decode_ctas,
          num_starters,
          GridCounter{params.grid_counter, shares.prompts.size() - num_starters + num_ctas}};
}

}  // namespace pagoda::kernels
