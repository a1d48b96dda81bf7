// The query row of a lane of tensor memory: row r of a block (Operands::block_of) is token
// r / num_heads of the block, query head first_head + r % num_heads.
#pragma once

#include "kernels/common/row.hpp"
#include "kernels/mha_sm100/storage.hpp"

namespace pagoda::mha_sm100 {

template <class Rule>
PAGODA_DEVICE kernels::Row<Rule> make_row(const AttentionParams& params, const Work& work,
                                          int block, int index) {
  return kernels::packed_row<Rule>(params, work, tokens_of_half(work), block, index);
}

}  // namespace pagoda::mha_sm100
