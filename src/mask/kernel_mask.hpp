// KernelMask: the interface between a kernel and a mask. A kernel is compiled for a mask type
// (IntervalMask or ExpressionMask); the mask itself is a run-time value.
#pragma once

#include <concepts>
#include <cstdint>

#include "mask/interval.hpp"
#include "mask/kv_tile_range.hpp"

namespace pagoda::mask {

// The mask of one query row and head; made once a row, called for every 32 columns.
//   keep32(column)           bit i: whether key column + i is kept. Zero past the last key. column
//                            is any key >= 0.
//   rewrite(column, score)   the score plus the mask's bias, both in log2 units. Called for every
//                            kept key where kRewritesScores, and never otherwise; may be called for
//                            masked keys too. -infinity masks the key.
template <typename R>
concept KernelMaskRow = requires(const R& row, int32_t column, float score) {
  { row.keep32(column) } -> std::same_as<uint32_t>;
  { row.rewrite(column, score) } -> std::same_as<float>;
};

//   kv_tiles(tile, shape)           start and end column, number of tiles, which are unmasked
//   status(tile, column, count)     the status of one tile of columns; the same for every role
//   row(tile, row, q_head)          `row` counts within the sequence
// A range contains every visible key, a skipped tile has no visible key, an unmasked tile no masked
// key (bias aside). Arithmetic is 32-bit except for addresses.
template <typename M>
concept KernelMask = requires(const M& mask, const RowTile& tile, TileShape shape, int32_t i) {
  { M::kRewritesScores } -> std::convertible_to<bool>;
  { mask.kv_tiles(tile, shape) } -> std::same_as<KVTileRange>;
  { mask.status(tile, i, i) } -> std::same_as<TileStatus>;
  { mask.row(tile, i, i) } -> KernelMaskRow;
};

}  // namespace pagoda::mask
