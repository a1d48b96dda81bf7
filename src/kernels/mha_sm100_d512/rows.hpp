// The query row of a lane of tensor memory: CTA `rank` of a pair has block `rank` of the work
// tile's rows; row r of a block is its token r / num_heads, query head first_head + r % num_heads.
#pragma once

#include "kernels/common/row.hpp"
#include "kernels/mha_sm100_d512/storage.hpp"

namespace pagoda::mha_sm100_d512 {

// Tokens of a block. Rows past the last whole token are padding rows.
template <class Config>
PAGODA_DEVICE int32_t tokens_of_block(const Work& work) {
  return Config::tile.block_rows / work.num_heads;
}

// TileConfig::computed_columns() for the call's head_dim_vo.
template <class Config>
PAGODA_DEVICE int32_t computed_columns(const AttentionParams& params, int section) {
  constexpr TileConfig tile = Config::tile;  // device code can't take the member's address
  return tile.computed_columns(section, params.dim_vo);
}

template <class Config, class Rule>
PAGODA_DEVICE kernels::Row<Rule> make_row(const AttentionParams& params, const Work& work, int rank,
                                          int index) {
  return kernels::packed_row<Rule>(params, work, tokens_of_block<Config>(work), rank, index);
}

}  // namespace pagoda::mha_sm100_d512
