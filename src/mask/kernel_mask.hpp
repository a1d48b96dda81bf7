// KernelMask: all that a kernel asks of a mask. Kernels are compiled per mask *class* (one file
// each); which mask of a class it is, is a run-time value.
#pragma once

#include <concepts>
#include <cstdint>

#include "mask/interval.hpp"
#include "mask/tile_walk.hpp"

namespace pagoda::mask {

enum class MaskClass : uint8_t {
  kInterval,    // IntervalMask
  kExpression,  // ExpressionMask: everything but the host's functors
};

// The view of one query row and head; made once, asked for every 32 columns.
//   keep32(column)           bit i: may the row see key column + i? Zero past the last key. column
//                            is any key >= 0.
//   rewrite(column, score)   the score after the mask's bias, in log2 units like its argument.
//                            Called for every kept key of every tile where kRewritesScores, and
//                            never otherwise; other keys may be asked about. -infinity hides the
//                            key.
template <typename R>
concept KernelMaskRow = requires(const R& row, int32_t column, float score) {
  { row.keep32(column) } -> std::same_as<uint32_t>;
  { row.rewrite(column, score) } -> std::same_as<float>;
};

//   walk(tile, shape)               start and end column, number of tiles, which are unmasked
//   status(tile, column, count)     one tile of columns; the same answer for every role
//   row(tile, row, q_head)          `row` counts within the sequence
// A walk visits every visible key, a skipped tile has none, an unmasked tile has no hidden one
// (bias aside). Arithmetic is 32-bit but for addresses.
template <typename M>
concept KernelMask = requires(const M& mask, const RowTile& tile, TileShape shape, int32_t i) {
  { M::kClass } -> std::convertible_to<MaskClass>;
  { M::kRewritesScores } -> std::convertible_to<bool>;
  { mask.walk(tile, shape) } -> std::same_as<TileWalk>;
  { mask.status(tile, i, i) } -> std::same_as<TileStatus>;
  { mask.row(tile, i, i) } -> KernelMaskRow;
};

}  // namespace pagoda::mask
