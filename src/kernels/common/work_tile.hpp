// Work: one work tile, that is a tile of query rows and a range of KV tiles. GridWork
// (grid_work.hpp) and StreamKWork (stream_k.hpp) make them; the scheduler lane of a CTA passes them
// to the other roles (work_ring.hpp).
//
// An instance's Config must have `tile` with BN, load, scores, block_rows, num_blocks(),
// fuses_heads, has_even_tiles() (whether its KV tiles must follow each other without gaps).
#pragma once

#include <cstdint>

#include "core/target.hpp"
#include "kernels/common/attention_params.hpp"
#include "kernels/common/functor.hpp"
#include "kernels/common/kinds.hpp"
#include "mask/kv_tile_range.hpp"

namespace pagoda::kernels {

// CTAs of a cluster that compute each work tile together, all with the same items:
// Config::tile.ctas where the tile has it.
template <class Config>
PAGODA_HOST_DEVICE constexpr int ctas_of_tile() {
  if constexpr (requires { Config::tile.ctas; }) {
    return Config::tile.ctas;
  } else {
    return 1;
  }
}

// Whether row tiles of tokens may hold several query heads (AttentionParams::row_block).
template <class Config>
PAGODA_HOST_DEVICE constexpr bool may_pack_heads() {
  if constexpr (requires { Config::tile.may_pack_heads(); }) {
    return Config::tile.may_pack_heads() && !kHasFunctorMask<Config> && !kHasFunctorScore<Config>;
  } else {
    return false;
  }
}
template <class Config>
inline constexpr bool kMayPackHeads = may_pack_heads<Config>();

// Whether splits have TileGrid::least_split_tiles KV tiles or more.
template <class Config>
consteval bool may_have_least_tiles() {
  if constexpr (requires { Config::tile.may_have_least_tiles(); }) {
    return Config::tile.may_have_least_tiles();
  } else {
    return false;
  }
}
template <class Config>
inline constexpr bool kMayHaveLeastTiles = may_have_least_tiles<Config>();

// The KV tiles that `rows` see. rows.num_rows > 0.
template <class Config>
PAGODA_DEVICE mask::KVTileRange kv_tiles_of(const AttentionParams& params,
                                            const mask::RowTile& rows) {
  // A gathered KV tile may start anywhere in a page; one that TMA loads must respect page limits.
  const int32_t page_size =
      Config::tile.load == LoadKind::kGather ? 0 : params.sequences.keys.paged_size();
  const mask::TileShape shape = mask::tile_shape(Config::tile.BN, page_size);
  if constexpr (kHasFunctorMask<Config>) {
    return functor_kv_tiles<Config, Config::tile.has_even_tiles()>(params, rows, shape);
  }
  if constexpr (Config::tile.scores == ScoreClass::kGeneral)
    return params.mask.kv_tiles(rows, shape);
  return params.mask.interval.kv_tiles(rows, shape);
}

struct Work {
  int32_t sequence = 0;
  int32_t kv_head = 0;
  int32_t first_head = 0;  // query head of row 0
  int32_t num_heads = 1;  // query heads of each token; the rows are in the order of Config's RowMap
  int32_t first_token = 0;
  int32_t num_tokens = 0;    // tokens whose rows of O are written; 0 ends the work
  int32_t valid_tokens = 0;  // the first of them, which hold queries; the others are padding rows
  int32_t memory_row = 0;    // row of the sequence's token 0 in memory, see RowsView
  mask::RowTile rows{};      // the argument of the masks; rows.num_rows > 0 unless walk is empty
  mask::KVTileRange walk{};  // the KV tiles of this split, computed from the last to the first
  // KV split: several CTAs compute splits of the same rows; the last of them to finish merges all.
  // Split i stores its partial result in slot(i) of the workspace.
  int32_t split = 0, num_splits = 1;
  int32_t first_slot = 0, next_slot = 0, slot_step = 1;

  [[nodiscard]] PAGODA_HOST_DEVICE int32_t slot(int32_t i) const {
    return i == 0 ? first_slot : next_slot + (i - 1) * slot_step;
  }
  [[nodiscard]] PAGODA_HOST_DEVICE bool is_split() const { return num_splits > 1; }
};

// The scale of stored K, or V, of the work tile.
PAGODA_DEVICE float k_scale(const AttentionParams& params, const Work& work) {
  return params.k_scales.of(work.sequence, work.kv_head);
}
PAGODA_DEVICE float v_scale(const AttentionParams& params, const Work& work) {
  return params.v_scales.of(work.sequence, work.kv_head);
}

// `left` valid tokens from a tile's first token on: how many of them are among its `num_tokens`.
PAGODA_HOST_DEVICE constexpr int32_t valid_of_tile(int32_t left, int32_t num_tokens) {
  return left < 0 ? 0 : (left < num_tokens ? left : num_tokens);
}

// How (token, query head) pairs fill row tiles of `blocks` blocks of `block_rows` rows. A block
// holds whole tokens: all `heads` of each.
struct PackedRows {
  int32_t heads = 1;       // query heads of a row tile
  int32_t head_tiles = 1;  // row tiles that cover the query heads of a KV head
  int32_t tokens = 1;      // tokens of a row tile

  // divides_group: every row tile has the same number of heads.
  PAGODA_HOST_DEVICE static PackedRows of(int32_t group, int32_t block_rows = 64,
                                          int32_t blocks = 1, bool divides_group = false) {
    if (group <= block_rows) return {group, 1, block_rows / group * blocks};
    int32_t heads = block_rows;
    while (divides_group && group % heads != 0) --heads;
    return {heads, (group - 1) / heads + 1, block_rows / heads * blocks};
  }
};

template <class Config>
PAGODA_HOST_DEVICE PackedRows packed_rows(int32_t group) {
  return PackedRows::of(group, Config::tile.block_rows, Config::tile.num_blocks(),
                        Config::tile.fuses_heads);
}

}  // namespace pagoda::kernels
