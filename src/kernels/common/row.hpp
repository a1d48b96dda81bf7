// A query row of a work tile and what changes its scores besides the scale: the parts of a softmax
// that do not depend on which columns a thread holds.
#pragma once

#include <cstdint>

#include "arch/memory.hpp"
#include "core/target.hpp"
#include "kernels/common/work_tile.hpp"
#include "softmax/online.hpp"
#include "softmax/score.hpp"

namespace pagoda::kernels {

template <class Rule>
struct Row {
  int32_t token = 0;  // of the sequence
  int32_t q_head = 0;
  bool is_written = false;  // the row exists in O
  bool is_valid = false;    // it exists and holds a query; otherwise it is a padding row
  mask::Interval keys{};    // bounding interval of the visible keys; empty where not valid
  // The sum is over this thread's columns, the maximum over the whole row.
  softmax::OnlineRow<Rule> online{};
  // Of the whole row, set when its mainloop ends.
  softmax::Sums sums{};
  float max = softmax::kMinusInfinity;
};

inline constexpr int32_t kRowsOfBlock = 64;  // of a RowBlock

// Which token and query head of its work tile row `index` is.
enum class RowMap : uint8_t {
  kTokens,  // token `index` of one head
  kPacked,  // token index / num_heads, head index % num_heads
  kHeads,   // head `index` of the only token
  // The same in each block of rows. A block holds whole tokens, so that its last rows may be empty.
  kPackedBlocks,
  kRowBlocks,  // the same of AttentionParams::row_block; `index` counts all rows of the tile
};

// Of one block: the token of the sequence and the query head of row `index`.
template <RowMap map>
PAGODA_DEVICE TokenAndHead token_and_head(const Work& work, int32_t index) {
  static_assert(map != RowMap::kPackedBlocks && map != RowMap::kRowBlocks);
  if constexpr (map == RowMap::kTokens) return {work.first_token + index, work.first_head};
  if constexpr (map == RowMap::kHeads) return {work.first_token, work.first_head + index};
  return {work.first_token + index / work.num_heads, work.first_head + index % work.num_heads};
}

// kPackedBlocks: `index` counts within block `block`, which holds `block_tokens` tokens.
template <class Rule, RowMap map>
PAGODA_DEVICE Row<Rule> tile_row(const AttentionParams& params, const Work& work, int32_t index,
                                 int32_t block_tokens = 0, int32_t block = 0) {
  Row<Rule> row;
  int32_t token = index, head = 0;
  if constexpr (map == RowMap::kRowBlocks) {
    block = index / kRowsOfBlock;
    block_tokens = params.row_block.tokens;
    const TokenAndHead of = params.row_block.at(index % kRowsOfBlock);
    token = of.token;
    head = of.head;
  } else if constexpr (map == RowMap::kHeads) {
    token = 0;
    head = index;
  } else if constexpr (map != RowMap::kTokens) {
    token = index / work.num_heads;
    head = index % work.num_heads;
  }
  const int32_t of_block = token;
  constexpr bool has_blocks = map == RowMap::kPackedBlocks || map == RowMap::kRowBlocks;
  if constexpr (has_blocks) token = block * block_tokens + of_block;
  row.token = work.first_token + token;
  row.q_head = work.first_head + head;
  if constexpr (has_blocks) {
    row.is_written = of_block < block_tokens && token < work.num_tokens;
    row.is_valid = of_block < block_tokens && token < work.valid_tokens;
  } else if constexpr (map == RowMap::kHeads) {
    row.is_written = row.is_valid = head < work.num_heads;
  } else {
    row.is_written = token < work.num_tokens;
    row.is_valid = token < work.valid_tokens;
  }
  if (row.is_valid) row.keys = params.mask.interval.visible(work.rows, row.token);
  return row;
}

template <class Rule>
PAGODA_DEVICE Row<Rule> packed_row(const AttentionParams& params, const Work& work,
                                   int32_t block_tokens, int32_t block, int32_t index) {
  return tile_row<Rule, RowMap::kPackedBlocks>(params, work, index, block_tokens, block);
}

// The mutant "row sum not rescaled" adds it: what multiplication with `factor` took from the row
// sum.
template <class Row>
PAGODA_DEVICE float lost_sum(const Row& row, float factor) {
  return row.online.sums().sum * (1 / factor - 1);
}

// Adds ALiBi and biases to `count` scores of `row`, in log2 units: at(i) is a score and column(i)
// its key. row.is_valid.
template <int count, class Row, class At, class Column>
PAGODA_DEVICE void add_biases(const AttentionParams& params, const mask::RowTile& tile,
                              const Row& row, const At& at, const Column& column) {
  if (params.alibi_slopes != nullptr) {
    const float slope = arch::load_read_only(params.alibi_slopes + row.q_head) * softmax::kLog2e;
    const int32_t position = tile.position(row.token);
    PAGODA_UNROLL
    for (int i = 0; i < count; ++i) at(i) += softmax::alibi_bias(slope, column(i), position);
  }
  for (int32_t b = 0; b < params.mask.num_biases; ++b) {
    const mask::BiasRow bias = params.mask.biases[b].row(tile, row.token, row.q_head);
    PAGODA_UNROLL
    for (int i = 0; i < count; ++i) at(i) = bias.rewrite(column(i), at(i));
  }
}

}  // namespace pagoda::kernels
