// Which query row a lane of tensor memory holds: row r of a block (Operands::block_of) is token
// r / num_heads of the block and query head r % num_heads of the tile's.
#pragma once

#include "kernels/attention/row.hpp"
#include "kernels/sm100/storage.hpp"

namespace pagoda::sm100 {

template <class Rule>
PAGODA_DEVICE kernel::Row<Rule> make_row(const AttentionParams& params, const Work& work, int block,
                                         int index) {
  kernel::Row<Rule> row;
  const int32_t tokens = tokens_of_half(work);
  const int32_t of_block = index / work.num_heads;
  const int32_t token = block * tokens + of_block;
  row.token = work.first_token + token;
  row.q_head = work.first_head + index % work.num_heads;
  row.is_written = of_block < tokens && token < work.num_tokens;
  row.is_valid = of_block < tokens && token < work.valid_tokens;
  if (row.is_valid) row.keys = mask::visible_keys(params.mask.interval, work.rows, row.token);
  return row;
}

}  // namespace pagoda::sm100
