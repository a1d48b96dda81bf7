// TileGrid: numbers the row tiles of a call. Its size follows from shapes alone, so that a launch
// needs no length from device memory. TileDecoder: finds the row tile of an index, on the device.
#pragma once

#include <algorithm>
#include <cstdint>

#include "arch/memory.hpp"
#include "arch/quotient.hpp"
#include "core/target.hpp"
#include "schedule/equal_shares.hpp"

namespace pagoda::schedule {

struct TileCoord {
  int32_t sequence = 0;
  int32_t head = 0;  // a query head, or a group of them where a tile packs heads
  int32_t tile = 0;  // of the sequence
  int32_t split = 0, num_splits = 1;
  int32_t first_row = 0;
  int32_t num_rows = 0;

  [[nodiscard]] PAGODA_HOST_DEVICE constexpr bool exists() const { return num_rows > 0; }
};

enum class TileOrder : uint8_t {
  kRowsFastest,   // the tiles of a head are neighbours: its K and V stay in L2
  kLongestFirst,  // causal: the tiles of the last rows, which see the most keys, come first
};

// Entries [0, size()), one for every row tile, head and split: the first `num_whole` are row tiles
// with all their keys, the row tiles after them have num_splits entries each. Where two CTAs
// compute a tile (a pair), the pair has one index.
//
// Ragged, in the way that has fewer entries (docs/decisions/0013):
//   most_rows == 0: the entries of sequence b start at cu_rows[b] / tile_rows + b (times heads and
//   splits). So a sequence has as many entries as tiles, or one more, which is empty. at() finds
//   the sequence by bisection: no array of tile counts has to be prepared.
//   most_rows > 0: every sequence has the entries of a sequence of so many rows. In a batch of
//   equal lengths none is empty, and at() loads two numbers.
struct TileGrid {
  int32_t batch = 0;
  int32_t num_heads = 0;
  int32_t tile_rows = 0;
  int32_t rows = 0;  // ragged: of all sequences together; padded: of each
  arch::GlobalPtr<const int32_t> cu_rows = nullptr;  // [batch + 1], null = padded
  int32_t most_rows = 0;                             // ragged: of a sequence; 0: not used
  // Equal shares (divide_among): num_whole is num_tiles(), num_splits the number of CTAs.
  int32_t num_splits = 1;
  int32_t num_whole = 0;  // at most num_tiles()
  // KV tiles of a split: a sequence of few keys has fewer splits, and the entries of the others are
  // empty. For kernels with kMayHaveLeastTiles.
  int32_t least_split_tiles = 1;
  TileOrder order = TileOrder::kRowsFastest;
  // kLongestFirst orders tiles within a section of so many heads, one section after the other. The
  // K and V of a section fit in L2; those of all heads of a large batch do not.
  int32_t section = INT32_MAX;

  // Ragged, each sequence with entries by its own length.
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr bool is_bisected() const {
    return cu_rows != nullptr && most_rows == 0;
  }
  // Row tiles of all heads.
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int32_t num_tiles() const {
    return (is_bisected() ? rows / tile_rows + batch : equal_tiles() * batch) * num_heads;
  }
  // Equal shares of the row tiles for `num_ctas` CTAs (equal_shares.hpp).
  constexpr void divide_among(int32_t num_ctas) {
    num_splits = num_ctas;
    num_whole = num_tiles();
  }
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int32_t size() const {
    return num_whole + (num_tiles() - num_whole) * num_splits;
  }
  // Of a sequence, where all have as many.
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int32_t equal_tiles() const {
    const int32_t most = cu_rows != nullptr ? most_rows : rows;
    return most == 0 ? 0 : (most - 1) / tile_rows + 1;
  }
};

// Entries [begin, end) of a grid.
struct EntryRange {
  int32_t begin = 0, end = 0;

  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int32_t size() const { return end - begin; }
};

// Decodes the indices of a grid. The host makes it, with the divisors: a kernel would need a
// hundred instructions more for its first row tile.
class TileDecoder : TileGrid {
 public:
  TileDecoder() = default;
  constexpr TileDecoder(const TileGrid& grid)  // NOLINT(google-explicit-constructor)
      : TileGrid(grid), size_(grid.size()) {
    const int32_t heads = grid.is_bisected() ? num_heads : num_heads * batch;
    wide_ = std::max(std::min(section, heads), 1);
    by_splits_ = arch::Divisor(num_splits);
    by_heads_ = arch::Divisor(std::max(num_heads, 1));
    by_wide_ = arch::Divisor(wide_);
    by_last_width_ = arch::Divisor(std::max(heads % wide_, 1));
    if (grid.is_bisected()) {
      by_rows_ = arch::Divisor(std::max(tile_rows, 1));
    } else {
      tiles_ = std::max(equal_tiles(), 1);
      by_tiles_ = arch::Divisor(tiles_);
      by_section_ = arch::Divisor(wide_ * tiles_);
    }
  }

  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int32_t size() const { return size_; }
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr const TileGrid& grid() const { return *this; }
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr arch::Divisor by_splits() const { return by_splits_; }
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr EqualShares equal_shares() const {
    return {size_, num_splits, by_splits_};
  }
  // The number that the grid has, as a constant.
  PAGODA_HOST_DEVICE constexpr void set_tile_rows(int32_t rows_of_tile) {
    tile_rows = rows_of_tile;
  }

  // Of a bisected grid without splits: the entries of sequences [first, past).
  [[nodiscard]] PAGODA_DEVICE EntryRange entries_of(int32_t first, int32_t past) const {
    return {first_entry(first) * num_heads, first_entry(past) * num_heads};
  }

  // In every order the splits of a tile are neighbours.
  [[nodiscard]] PAGODA_DEVICE TileCoord at(int32_t index) const {
    if (index < 0 || index >= size_) return {};
    int32_t unit = index, split = 0;  // of a grid without splits
    const bool is_split = num_splits > 1 && index >= num_whole;
    if (is_split) {
      const int32_t rest = index - num_whole, row_tile = by_splits_.quotient(rest);
      unit = num_whole + row_tile;
      split = rest - row_tile * num_splits;
    }
    TileCoord coord = is_bisected() ? bisected(unit) : equal(unit);
    coord.split = split;
    if (is_split) coord.num_splits = num_splits;
    return coord;
  }

 private:
  [[nodiscard]] PAGODA_DEVICE int32_t first_row(int32_t sequence) const {
    return arch::load_read_only(cu_rows + sequence);
  }
  [[nodiscard]] PAGODA_DEVICE int32_t first_entry(int32_t sequence) const {
    return by_rows_.quotient(first_row(sequence)) + sequence;
  }

  // Entry `unit` of a grid without splits whose sequences have as many entries.
  [[nodiscard]] PAGODA_DEVICE TileCoord equal(int32_t unit) const {
    HeadTile at;  // the head of all sequences
    if (order == TileOrder::kRowsFastest) {
      at.head = by_tiles_.quotient(unit);
      at.tile = unit - at.head * tiles_;
    } else {
      at = longest_first(unit, by_section_.quotient(unit), num_heads * batch, tiles_);
    }
    const int32_t sequence = by_heads_.quotient(at.head);
    const int32_t length =
        cu_rows != nullptr ? first_row(sequence + 1) - first_row(sequence) : rows;
    return coord(sequence, at.head - sequence * num_heads, at.tile, length);
  }

  struct HeadTile {
    int32_t head = 0, tile = 0;
  };
  // Entry `unit` of `heads` x `tiles`, in section `section_index`.
  [[nodiscard]] PAGODA_DEVICE HeadTile longest_first(int32_t unit, int32_t section_index,
                                                     int32_t heads, int32_t tiles) const {
    const int32_t first = section_index * wide_, rest = unit - first * tiles;
    const bool is_last = heads - first < wide_;
    const int32_t row = (is_last ? by_last_width_ : by_wide_).quotient(rest);
    const int32_t width = is_last ? heads - first : wide_;
    return {first + rest - row * width, tiles - 1 - row};
  }

  // The same whose sequences have entries by their own lengths.
  [[nodiscard]] PAGODA_DEVICE TileCoord bisected(int32_t unit) const {
    // The last sequence whose entries start at or before the unit's.
    const int32_t entry = by_heads_.quotient(unit);
    int32_t sequence = 0;
    for (int32_t past = batch; past - sequence > 1;) {
      const int32_t middle = sequence + (past - sequence) / 2;
      if (first_entry(middle) <= entry) {
        sequence = middle;
      } else {
        past = middle;
      }
    }
    const int32_t length = first_row(sequence + 1) - first_row(sequence);
    const int32_t entries = first_entry(sequence + 1) - first_entry(sequence);
    const int32_t rest = unit - first_entry(sequence) * num_heads;
    if (rest >= entries * num_heads) return {};  // index is past the last sequence
    if (order == TileOrder::kRowsFastest) {
      const int32_t head = arch::quotient(rest, entries);
      return coord(sequence, head, rest - head * entries, length);
    }
    const HeadTile at =
        longest_first(rest, arch::quotient(rest, wide_ * entries), num_heads, entries);
    return coord(sequence, at.head, at.tile, length);
  }

  [[nodiscard]] PAGODA_HOST_DEVICE constexpr TileCoord coord(int32_t sequence, int32_t head,
                                                             int32_t tile, int32_t length) const {
    const int32_t left = length - tile * tile_rows;
    const int32_t num_rows = left < tile_rows ? (left < 0 ? 0 : left) : tile_rows;
    return {sequence, head, tile, 0, 1, tile * tile_rows, num_rows};
  }

  int32_t size_ = 0;
  int32_t tiles_ = 1;  // not bisected: equal_tiles(), or 1
  int32_t wide_ = 1;   // heads of a section but the last, which may have fewer
  // Not bisected: by equal_tiles() and by those of a section. Bisected: by tile_rows.
  arch::Divisor by_tiles_, by_section_, by_rows_;
  arch::Divisor by_splits_, by_heads_, by_wide_, by_last_width_;
};

}  // namespace pagoda::schedule
