// ExpressionMask: the class of every mask that is more than one interval: bits, biases, and any AND
// and OR of leaves; not the host's functors. A kernel has it by value in its parameters and reads
// it from there: a copy would be indexed in local memory. make_expression_mask.hpp builds it.
#pragma once

#include <cstdint>

#include "arch/memory.hpp"
#include "core/target.hpp"
#include "mask/interval_mask.hpp"
#include "mask/kernel_mask.hpp"

namespace pagoda::mask {

// The biases of one row and head: key k has data[k - first] where first <= k < end, else none.
struct BiasRow {
  arch::GlobalPtr<const float> data = nullptr;
  int32_t first = 0;
  int32_t end = 0;

  // A score in log2 units plus a bias in natural ones.
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
    // Distances outside the table, and keys outside [0, INT32_MAX], have no entry.
    const int32_t first = q > extent ? q - extent : 0;
    const int32_t end = q < INT32_MAX - extent ? q + extent + 1 : INT32_MAX;
    return {table + (int64_t{first} - q + extent), first, end};
  }
};

// A leaf that hides keys: an interval, or where row_offsets is set one bit per (row, key). Row i of
// sequence b has the ceil(seqlen_kv / 32) words from row_offsets[b] + i * ceil(seqlen_kv / 32).
struct ExpressionLeaf {
  IntervalMask interval{};
  arch::GlobalPtr<const uint32_t> words = nullptr;
  arch::GlobalPtr<const int64_t> row_offsets = nullptr;

  // Bit i: is key column + i kept? 0 <= column < seqlen_kv; bits past the last key may be set.
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
  static constexpr MaskClass kClass = MaskClass::kExpression;
  static constexpr bool kRewritesScores = true;  // where has_bias()
  static constexpr int32_t kMaxLeaves = 8;
  static constexpr int32_t kMaxDepth = 4;  // of evaluate(): enough for any tree of 8 leaves

  // One step of the program, two bits of it, the first step lowest.
  static constexpr uint32_t kLeaf = 1, kAnd = 2, kOr = 3;

  // A key is kept where the interval and the program keep it; 0 is the program that keeps every
  // key. Leaves are in the order of their steps, operators follow their operands.
  IntervalMask interval{};
  uint32_t program = 0;
  bool is_interval = true;  // every leaf is an interval and no step is kOr: the hull is exact
  int32_t num_biases = 0;
  ExpressionLeaf leaves[kMaxLeaves];
  Bias biases[kMaxLeaves];  // of kept keys; their -infinity hides, too

  [[nodiscard]] PAGODA_HOST_DEVICE constexpr bool has_bias() const { return num_biases > 0; }

  // The hull of what the row sees.
  [[nodiscard]] PAGODA_DEVICE Interval visible(const RowTile& tile, int32_t row) const {
    const Interval keys = interval.visible(tile, row);
    return program == 0 ? keys : keys & evaluate<Interval>(LeafHull{tile, row});
  }
  [[nodiscard]] PAGODA_DEVICE TileWalk walk(const RowTile& tile, TileShape shape) const {
    const TileWalk walk = make_walk(visible(tile, tile.first_row),
                                    visible(tile, tile.first_row + tile.num_rows - 1), shape);
    return is_interval ? walk : walk.all_partial();
  }
  [[nodiscard]] PAGODA_DEVICE TileStatus status(const RowTile& tile, int32_t column,
                                                int32_t count) const {
    const TileStatus status =
        tile_status(visible(tile, tile.first_row),
                    visible(tile, tile.first_row + tile.num_rows - 1), column, count);
    return is_interval || status == TileStatus::kSkip ? status : TileStatus::kPartial;
  }
  // `row` must exist: its words and biases are read.
  [[nodiscard]] PAGODA_DEVICE ExpressionRow row(const RowTile& tile, int32_t row,
                                                int32_t q_head) const;

  // What the program leaves of the leaves' values. The stack is four registers that shift: an array
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
  struct LeafHull {
    const RowTile& tile;
    int32_t row;
    PAGODA_DEVICE Interval operator()(const ExpressionLeaf& leaf) const {
      return leaf.interval.visible(tile, row);  // of bits: all keys
    }
  };
};

struct ExpressionRow {
  const ExpressionMask* mask = nullptr;
  RowTile tile{};
  int32_t row = 0;
  int32_t q_head = 0;
  Interval keys;  // of mask->interval

  [[nodiscard]] PAGODA_DEVICE uint32_t keep32(int32_t column) const {
    const uint32_t inside = keys.keep32(column);
    if (inside == 0 || mask->program == 0) return inside;  // 0: may lie past the words of bits
    return inside & mask->evaluate<uint32_t>(LeafWord{tile, row, column});
  }
  // A kernel that has many columns of one row is faster with the biases outside: row.bias(i) once,
  // its rewrite() for every column, for each i < mask.num_biases.
  [[nodiscard]] PAGODA_DEVICE float rewrite(int32_t column, float score) const {
    for (int32_t i = 0; i < mask->num_biases; ++i) score = bias(i).rewrite(column, score);
    return score;
  }
  [[nodiscard]] PAGODA_DEVICE BiasRow bias(int32_t index) const {
    return mask->biases[index].row(tile, row, q_head);
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

PAGODA_DEVICE ExpressionRow ExpressionMask::row(const RowTile& tile, int32_t row,
                                                int32_t q_head) const {
  return {this, tile, row, q_head, interval.visible(tile, row)};
}

static_assert(KernelMask<ExpressionMask>);
static_assert(sizeof(ExpressionMask) < 1024,
              "kernel parameters are 4 KB, with tensor maps in them");

}  // namespace pagoda::mask
