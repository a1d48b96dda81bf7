// A query row of a tile, and what changes its scores beside the scale: the parts of a softmax that do not
// depend on which columns a thread holds.
#pragma once

#include <cstdint>

#include "arch/memory.hpp"
#include "core/target.hpp"
#include "kernels/common/work.hpp"
#include "softmax/online.hpp"
#include "softmax/score.hpp"

namespace pagoda::kernels {

template <class Rule>
struct Row {
  int32_t token = 0;  // of the sequence
  int32_t q_head = 0;
  bool is_written = false;  // O has this row
  bool is_valid = false;    // .. and it holds a query
  mask::Interval keys{};    // the hull of what it sees; empty where not valid
  // Over this thread's columns; the maximum is the whole row's.
  softmax::OnlineRow<Rule> online{};
  softmax::Sums sums{};  // of the whole row, at the end
};

// Row `index` of block `block` of a tile whose blocks hold `tokens` tokens each: token index / num_heads of
// the block, query head index % num_heads of the tile's.
template <class Rule>
PAGODA_DEVICE Row<Rule> packed_row(const AttentionParams& params, const Work& work, int32_t tokens,
                                   int32_t block, int32_t index) {
  Row<Rule> row;
  const int32_t of_block = index / work.num_heads;
  const int32_t token = block * tokens + of_block;
  row.token = work.first_token + token;
  row.q_head = work.first_head + index % work.num_heads;
  row.is_written = of_block < tokens && token < work.num_tokens;
  row.is_valid = of_block < tokens && token < work.valid_tokens;
  if (row.is_valid) row.keys = params.mask.interval.visible(work.rows, row.token);
  return row;
}

// What `factor` took from the row sum: added again by the mutant that does not rescale it.
template <class Row>
PAGODA_DEVICE float lost_sum(const Row& row, float factor) {
  return row.online.sums().sum * (1 / factor - 1);
}

// ALiBi and biases of `count` scores in log2 units: at(i) is one of `row`, which is valid, and
// column(i) its key.
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
