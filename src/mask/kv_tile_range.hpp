// KVTileRange: the KV tiles that the query rows of a CTA visit, in order, and which of them need no
// mask. Every role of a kernel computes the same range from the same arguments: roles do not
// communicate it.
#pragma once

#include <cstdint>

#include "core/int_math.hpp"
#include "core/target.hpp"
#include "mask/interval.hpp"

namespace pagoda::mask {

// Query rows [first_row, first_row + num_rows) of one sequence: those of a CTA, or of both CTAs of
// a pair. num_rows > 0 counts valid rows; a row is a token, also where several heads are packed.
struct RowTile {
  int32_t sequence = 0;
  int32_t seqlen_kv = 0;
  int32_t q_position = 0;  // position of the sequence's row 0
  int32_t first_row = 0;
  int32_t num_rows = 0;

  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int32_t position(int32_t row) const {
    return q_position + row;
  }
};

// Columns of the key tiles.
struct TileShape {
  int32_t keys = 0;       // BN
  int32_t alignment = 1;  // the first column is a multiple of this, a divisor of `keys`
};

// The alignment is the greatest common divisor of tile and page: a tile starts at a page boundary
// where pages are smaller, and stays inside one page where they are larger. page_size 0 = not
// paged: a tile may start at any row.
PAGODA_HOST_DEVICE constexpr TileShape tile_shape(int32_t keys, int32_t page_size) {
  if (page_size == 0) return {keys, 1};
  int32_t a = keys;
  for (int32_t b = page_size; b != 0;) {
    const int32_t remainder = a % b;
    a = b;
    b = remainder;
  }
  return {keys, a};
}

struct KVTileRange {
  int32_t start_column = 0;  // first column of tile 0, aligned
  int32_t end_column = 0;    // past the last key that a row sees; <= start_column: no tile
  int32_t tile_keys = 0;
  // Tiles [unmasked_begin, unmasked_end) are unmasked: every row sees all their keys. The tiles
  // before and after them are partial: the keep mask decides.
  int32_t unmasked_begin = 0;
  int32_t unmasked_end = 0;
  int32_t num_tiles = 0;

  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int32_t column(int32_t tile) const {
    return start_column + tile * tile_keys;
  }
  // Columns of a tile that may be read. P V must stop there: later rows of V may be uninitialised,
  // and 0 * NaN is NaN.
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int32_t valid_keys(int32_t tile) const {
    const int32_t left = end_column - column(tile);
    return left < tile_keys ? left : tile_keys;
  }
  // The same tiles, all of them partial.
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr KVTileRange all_partial() const {
    KVTileRange range = *this;
    range.unmasked_begin = range.unmasked_end = num_tiles;
    return range;
  }
  // The tiles of one KV split: columns [begin, end). Both are tile boundaries of this range; `end`
  // may be end_column.
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr KVTileRange part(int32_t begin, int32_t end) const {
    KVTileRange range = *this;
    range.start_column = begin;
    range.end_column = end;
    range.num_tiles = end > begin ? (end - begin - 1) / tile_keys + 1 : 0;
    const int32_t skipped = (begin - start_column) / tile_keys;
    range.unmasked_begin = clamp(unmasked_begin - skipped, range.num_tiles);
    range.unmasked_end = clamp(unmasked_end - skipped, range.num_tiles);
    return range;
  }

 private:
  static PAGODA_HOST_DEVICE constexpr int32_t clamp(int32_t tile, int32_t count) {
    return tile < 0 ? 0 : (tile > count ? count : tile);
  }
};

// The range of a tile of rows whose first row sees `first` and whose last row sees `last`.
PAGODA_HOST_DEVICE constexpr KVTileRange make_kv_tile_range(Interval first, Interval last,
                                                            TileShape shape) {
  KVTileRange range;
  range.tile_keys = shape.keys;
  range.start_column = core::align_down(first.lo, shape.alignment);
  range.end_column = range.start_column;
  if (last.hi <= first.lo) return range;
  range.end_column = last.hi;
  range.num_tiles = (last.hi - range.start_column - 1) / shape.keys + 1;
  // Every row sees [last.lo, first.hi).
  int32_t begin = (last.lo - range.start_column) / shape.keys;
  if (begin * shape.keys < last.lo - range.start_column) ++begin;
  const int32_t end = (first.hi - range.start_column) / shape.keys;
  const bool has_unmasked = first.hi > last.lo && begin < end;
  range.unmasked_begin = has_unmasked ? begin : range.num_tiles;
  range.unmasked_end = has_unmasked ? end : range.num_tiles;
  return range;
}

}  // namespace pagoda::mask
