// ExpressionMask: any mask but the host's functors: bits, biases, and any AND and OR of leaves. A
// kernel has it by value in its parameters and indexes it there: a copy would be in local memory.
// make_expression_mask.hpp builds it.
#pragma once

#include <cstdint>

#include "arch/memory.hpp"
#include "core/target.hpp"
#include "mask/interval_mask.hpp"

namespace pagoda::mask {

// The biases of one row and head: data[k - first] for key k in [first, end), none for other keys.
struct BiasRow {
  arch::GlobalPtr<const float> data = nullptr;
  int32_t first = 0;
  int32_t end = 0;

  // The score, in log2 units, plus the bias, which is in natural units.
  [[nodiscard]] PAGODA_DEVICE float rewrite(int32_t column, float score) const {
    constexpr float kLog2e = 1.44269504F;
    if (column < first || column >= end) return score;
    return score + arch::load_read_only(data + (column - first)) * kLog2e;
  }
};

// fp32 added to scores. Materialised: element (b, h, row, k) at the strides below (0 broadcasts),
// keys contiguous. Relative: element (h, k - q + extent) for |k - q| <= extent.
struct Bias {
  arch::GlobalPtr<const float> data = nullptr;
  int64_t sequence_stride = 0;
  int64_t head_stride = 0;
  int64_t row_stride = 0;
  int32_t extent = -1;  // >= 0: relative; below INT32_MAX

  [[nodiscard]] PAGODA_DEVICE BiasRow row(const RowTile& tile, int32_t row, int32_t q_head) const {
    const arch::GlobalPtr<const float> of_head = data + q_head * head_stride;
    if (extent >= 0) return relative_row(of_head, tile.position(row));
    return {of_head + tile.sequence * sequence_stride + row * row_stride, 0, tile.seqlen_kv};
  }

 private:
  [[nodiscard]] PAGODA_DEVICE BiasRow relative_row(arch::GlobalPtr<const float> table,
                                                   int32_t q) const {
    // Distances outside the table and keys outside [0, INT32_MAX] have no bias.
    const int32_t first = q > extent ? q - extent : 0;
    const int32_t end = q < INT32_MAX - extent ? q + extent + 1 : INT32_MAX;
    return {table + (int64_t{first} - q + extent), first, end};
  }
};

// A leaf without bias: an interval, or, where row_offsets is set, one bit per (row, key). Row i of
// sequence b has the ceil(seqlen_kv / 32) words from row_offsets[b] + i * ceil(seqlen_kv / 32).
struct ExpressionLeaf {
  IntervalMask interval{};
  arch::GlobalPtr<const uint32_t> words = nullptr;
  arch::GlobalPtr<const int64_t> row_offsets = nullptr;

  // Bit i: whether key column + i is kept. 0 <= column < seqlen_kv; bits past the last key are
  // undefined.
  [[nodiscard]] PAGODA_DEVICE uint32_t keep32(const RowTile& tile, int32_t row,
                                              int32_t column) const {
    if (row_offsets == nullptr) return interval.visible(tile, row).keep32(column);
    const int32_t num_words = tile.seqlen_kv / 32 + (tile.seqlen_kv % 32 != 0 ? 1 : 0);
    const arch::GlobalPtr<const uint32_t> word = words +
                                                 arch::load_read_only(row_offsets + tile.sequence) +
                                                 int64_t{row} * num_words + column / 32;
    const auto shift = static_cast<uint32_t>(column % 32);
    const uint32_t low = arch::load_read_only(word) >> shift;
    if (shift == 0 || column / 32 + 1 >= num_words) return low;
    return low | arch::load_read_only(word + 1) << (32U - shift);
  }
};

struct ExpressionRow;

struct ExpressionMask {
  static constexpr int32_t kMaxLeaves = 8;
  static constexpr int32_t kMaxDepth = 4;  // stack of evaluate(): enough for any tree of 8 leaves

  // The steps of the program: two bits each, the first step in the lowest bits.
  static constexpr uint32_t kLeaf = 1, kAnd = 2, kOr = 3;

  // A key is kept if the interval and the program keep it; program 0 keeps every key. Leaves are in
  // the order of their steps, operators follow their operands (postfix).
  IntervalMask interval{};
  uint32_t program = 0;
  bool is_interval = true;  // all leaves are intervals, no step is kOr: visible() is exact
  int32_t num_biases = 0;
  ExpressionLeaf leaves[kMaxLeaves];
  Bias biases[kMaxLeaves];  // of kept keys; -infinity masks a key

  [[nodiscard]] PAGODA_HOST_DEVICE constexpr bool has_bias() const { return num_biases > 0; }

  // The bounding interval of the keys that the row sees.
  [[nodiscard]] PAGODA_DEVICE Interval visible(const RowTile& tile, int32_t row) const {
    const Interval keys = interval.visible(tile, row);
    return program == 0 ? keys : keys & evaluate<Interval>(LeafInterval{tile, row});
  }
  [[nodiscard]] PAGODA_DEVICE KVTileRange kv_tiles(const RowTile& tile, TileShape shape) const {
    const KVTileRange range = make_kv_tile_range(
        visible(tile, tile.first_row), visible(tile, tile.first_row + tile.num_rows - 1), shape);
    return is_interval ? range : range.all_partial();
  }
  // The keep words of one row, for every 32 columns. `row` must be a row of the sequence: its bits
  // are read. Biases are separate: biases[i].row() once a row, its rewrite() for every column.
  [[nodiscard]] PAGODA_DEVICE ExpressionRow row(const RowTile& tile, int32_t row) const;

  // Evaluates the program over the leaves' values. The stack is four registers that shift: an array
  // would be in local memory.
  template <class Value, class LeafValue>
  [[nodiscard]] PAGODA_DEVICE Value evaluate(const LeafValue& value_of) const {
    Value top{}, second{}, third{}, fourth{};
    const ExpressionLeaf* leaf = leaves;
    for (uint32_t steps = program; steps != 0; steps >>= 2) {
      const uint32_t step = steps & 3U;
      if (step == kLeaf) {
        fourth = third;
        third = second;
        second = top;
        top = value_of(*leaf++);
      } else {
        top = step == kAnd ? second & top : second | top;
        second = third;
        third = fourth;
      }
    }
    return top;
  }

 private:
  struct LeafInterval {
    const RowTile& tile;
    int32_t row;
    PAGODA_DEVICE Interval operator()(const ExpressionLeaf& leaf) const {
      return leaf.interval.visible(tile, row);  // a leaf of bits: all keys
    }
  };
};

struct ExpressionRow {
  const ExpressionMask* mask = nullptr;
  RowTile tile{};
  int32_t row = 0;
  Interval keys;  // visible through mask->interval

  // Bit i: whether key column + i is kept. Zero past the last key; column is any key >= 0.
  [[nodiscard]] PAGODA_DEVICE uint32_t keep32(int32_t column) const {
    const uint32_t inside = keys.keep32(column);
    // Without a visible key `column` may be past the words of bits.
    if (inside == 0 || mask->program == 0) return inside;
    return inside & mask->evaluate<uint32_t>(LeafWord{tile, row, column});
  }

 private:
  struct LeafWord {
    const RowTile& tile;
    int32_t row;
    int32_t column;
    PAGODA_DEVICE uint32_t operator()(const ExpressionLeaf& leaf) const {
      return leaf.keep32(tile, row, column);
    }
  };
};

PAGODA_DEVICE ExpressionRow ExpressionMask::row(const RowTile& tile, int32_t row) const {
  return {this, tile, row, interval.visible(tile, row)};
}

static_assert(sizeof(ExpressionMask) < 1024,
              "kernel parameters are 4 KB, with tensor maps in them");

}  // namespace pagoda::mask
