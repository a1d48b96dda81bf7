// Which query row a lane of tensor memory holds: row r of a half is token r / num_heads of the half and
// query head r % num_heads of the tile's.
#pragma once

#include "kernels/attention/row.hpp"
#include "kernels/sm100/storage.hpp"

namespace pagoda::sm100 {

template <class Rule>
PAGODA_DEVICE kernel::Row<Rule> make_row(const AttentionParams& params, const Work& work, int half,
                                         int index) {
  return kernel::packed_row<Rule>(params, work, tokens_of_half(work), half, index);
}

}  // namespace pagoda::sm100
