// TileGrid: numbers the row tiles of a call; the device decodes an index. Its size follows from
// shapes alone, so that a launch needs no length from device memory.
#pragma once

#include <cstdint>

#include "arch/memory.hpp"
#include "arch/quotient.hpp"
#include "core/target.hpp"

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
  int32_t num_splits = 1;
  int32_t num_whole = 0;  // at most num_tiles()
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
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int32_t size() const {
    return num_whole + (num_tiles() - num_whole) * num_splits;
  }
  // In every order the splits of a tile are neighbours.
  [[nodiscard]] PAGODA_DEVICE TileCoord at(int32_t index) const {
    if (index < 0 || index >= size()) return {};
    if (num_splits == 1 || index < num_whole) return unsplit(index);
    const int32_t unit = arch::quotient(index - num_whole, num_splits);
    TileCoord coord = unsplit(num_whole + unit);
    coord.split = index - num_whole - unit * num_splits;
    coord.num_splits = num_splits;
    return coord;
  }

 private:
  // Entry `unit` of a grid without splits.
  [[nodiscard]] PAGODA_DEVICE TileCoord unsplit(int32_t unit) const {
    return is_bisected() ? bisected(unit) : equal(unit);
  }
  // Of a sequence, where all have as many entries.
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int32_t equal_tiles() const {
    const int32_t most = cu_rows != nullptr ? most_rows : rows;
    return most == 0 ? 0 : (most - 1) / tile_rows + 1;
  }
  [[nodiscard]] PAGODA_DEVICE int32_t first_row(int32_t sequence) const {
    return arch::load_read_only(cu_rows + sequence);
  }
  [[nodiscard]] PAGODA_DEVICE int32_t first_entry(int32_t sequence) const {
    return arch::quotient(first_row(sequence), tile_rows) + sequence;
  }

  [[nodiscard]] PAGODA_DEVICE TileCoord equal(int32_t unit) const {
    const int32_t tiles = equal_tiles();
    HeadTile at;  // the head of all sequences
    if (order == TileOrder::kRowsFastest) {
      at.head = arch::quotient(unit, tiles);
      at.tile = unit - at.head * tiles;
    } else {
      at = longest_first(unit, num_heads * batch, tiles);
    }
    const int32_t sequence = arch::quotient(at.head, num_heads);
    const int32_t length =
        cu_rows != nullptr ? first_row(sequence + 1) - first_row(sequence) : rows;
    return coord(sequence, at.head - sequence * num_heads, at.tile, length);
  }

  struct HeadTile {
    int32_t head = 0, tile = 0;
  };
  // Entry `unit` of `heads` x `tiles`.
  [[nodiscard]] PAGODA_DEVICE HeadTile longest_first(int32_t unit, int32_t heads,
                                                     int32_t tiles) const {
    const int32_t wide = section < heads ? section : heads;
    const int32_t first = arch::quotient(unit, wide * tiles) * wide;
    const int32_t width = heads - first < wide ? heads - first : wide;
    const int32_t rest = unit - first * tiles;
    const int32_t row = arch::quotient(rest, width);
    return {first + rest - row * width, tiles - 1 - row};
  }

  [[nodiscard]] PAGODA_DEVICE TileCoord bisected(int32_t unit) const {
    // The last sequence whose entries start at or before the unit's.
    const int32_t entry = arch::quotient(unit, num_heads);
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
    const HeadTile at = longest_first(rest, num_heads, entries);
    return coord(sequence, at.head, at.tile, length);
  }

  [[nodiscard]] PAGODA_HOST_DEVICE constexpr TileCoord coord(int32_t sequence, int32_t head,
                                                             int32_t tile, int32_t length) const {
    const int32_t left = length - tile * tile_rows;
    const int32_t num_rows = left < tile_rows ? (left < 0 ? 0 : left) : tile_rows;
    return {sequence, head, tile, 0, 1, tile * tile_rows, num_rows};
  }
};

}  // namespace pagoda::schedule
