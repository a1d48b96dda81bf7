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

// Columns of the KV tiles.
struct TileShape {
  int32_t keys = 0;       // BN
  int32_t alignment = 1;  // the first column is a multiple of this, a divisor of `keys`
};

// The alignment is the greatest common divisor of tile and page: a tile starts at a page boundary
// where pages are smaller, and stays inside one page where they are larger. page_size 0 = not
// paged: a tile may start at any row.
// `keys` is a constant, 2^n or 3 * 2^n.
PAGODA_HOST_DEVICE constexpr TileShape tile_shape(int32_t keys, int32_t page_size) {
  if (page_size == 0) return {keys, 1};
  const int32_t power = keys & -keys, page_power = page_size & -page_size;
  const int32_t common = power < page_power ? power : page_power;
  const int32_t odd = keys / power;
  return {keys, odd == 3 && page_size % 3 == 0 ? 3 * common : common};
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
  // Functors (kernels/common/functor.hpp): the columns from gap_begin, a tile boundary, on stand
  // for keys that are gap_keys further. The keys between are in no tile. Other masks: column = key.
  int32_t gap_begin = 0;
  int32_t gap_keys = 0;

  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int32_t column(int32_t tile) const {
    return start_column + tile * tile_keys;
  }
  // The first key of a tile, where there may be a gap.
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int32_t first_key(int32_t tile) const {
    const int32_t at = column(tile);
    return at < gap_begin ? at : at + gap_keys;
  }
  // The column of a key; the gap's begin for keys in the gap.
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int32_t column_of(int32_t key) const {
    if (key < gap_begin) return key;
    return key < gap_begin + gap_keys ? gap_begin : key - gap_keys;
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
  // The tiles from `start_column` on that some of the rows visit, of which the first sees `first`
  // and the last `last`: up to the last key that they see. `keys` is tile_keys, a constant.
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr KVTileRange of_rows(Interval first, Interval last,
                                                                 int32_t keys) const {
    return of_columns(last.hi, {last.lo, first.hi}, keys);  // every row sees [last.lo, first.hi)
  }
  // The tiles from `start_column` on up to column `past`. Every row sees the columns `unmasked`.
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr KVTileRange of_columns(int32_t past_column,
                                                                    Interval unmasked,
                                                                    int32_t keys) const {
    KVTileRange range = *this;
    const int32_t past = past_column < end_column ? past_column : end_column;
    range.num_tiles = past > start_column ? (past - start_column - 1) / keys + 1 : 0;
    const int32_t begin =
        unmasked.lo > start_column ? (unmasked.lo - start_column - 1) / keys + 1 : 0;
    const int32_t end = unmasked.hi > start_column ? (unmasked.hi - start_column) / keys : 0;
    const bool has_unmasked = begin < end && begin < range.num_tiles;
    range.unmasked_begin = has_unmasked ? begin : range.num_tiles;
    range.unmasked_end = has_unmasked ? clamp(end, range.num_tiles) : range.num_tiles;
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
  // Not only for speed: a division is 36 instructions that most calls need not fetch.
  range.start_column = first.lo == 0 ? 0 : core::align_down(first.lo, shape.alignment);
  range.end_column = range.start_column;
  if (last.hi <= first.lo) return range;
  range.end_column = last.hi;
  return range.of_rows(first, last, shape.keys);
}

// The range of rows that see keys of `keys` and of `prefix`, which begins first, and of which every
// one sees all keys of `unmasked`. Where a tile or more lies between both, it is in no tile.
PAGODA_HOST_DEVICE constexpr KVTileRange make_kv_tile_range(Interval prefix, Interval keys,
                                                            Interval unmasked, TileShape shape) {
  if (keys.empty()) keys = prefix;
  if (prefix.empty()) prefix = keys;
  KVTileRange range;
  range.tile_keys = shape.keys;
  range.start_column = core::align_down(prefix.lo, shape.alignment);
  range.end_column = range.start_column;
  if (keys.empty()) return range;
  const int32_t tiles = (prefix.hi - range.start_column - 1) / shape.keys + 1;
  const int32_t past_prefix = range.start_column + tiles * shape.keys;
  const int32_t gap = core::align_down(keys.lo, shape.alignment) - past_prefix;
  if (gap > 0) {
    range.gap_begin = past_prefix;
    range.gap_keys = gap;
  }
  range.end_column = range.column_of(keys.hi > prefix.hi ? keys.hi : prefix.hi);
  return range.of_columns(range.end_column,
                          {range.column_of(unmasked.lo), range.column_of(unmasked.hi)}, shape.keys);
}

}  // namespace pagoda::mask
