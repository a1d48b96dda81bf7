// Which query row a lane of tensor memory holds: CTA `rank` of a pair has block `rank` of the tile's rows,
// row r of a block is token r / num_heads of it and query head r % num_heads of the tile's.
#pragma once

#include "kernels/common/row.hpp"
#include "kernels/mha_sm100_d512/storage.hpp"

namespace pagoda::mha_sm100_d512 {

// Tokens whose rows make a block; rows past the last whole token are nobody's.
template <class Config>
PAGODA_DEVICE int32_t tokens_of_block(const Work& work) {
  return Config::tile.block_rows / work.num_heads;
}

// TileConfig::computed_columns() of the call's O.
template <class Config>
PAGODA_DEVICE int32_t computed_columns(const AttentionParams& params, int section) {
  constexpr TileConfig tile = Config::tile;  // local: device code has no address of the member
  return tile.computed_columns(section, params.dim_vo);
}

template <class Config, class Rule>
PAGODA_DEVICE kernels::Row<Rule> make_row(const AttentionParams& params, const Work& work, int rank,
                                          int index) {
  return kernels::packed_row<Rule>(params, work, tokens_of_block<Config>(work), rank, index);
}

}  // namespace pagoda::mha_sm100_d512
