// AdditiveMask: fp32 biases on the scores, inside an interval: a materialised tensor, or a table by
// distance (relative bias). Every tile's scores are rewritten; the interval alone decides the walk.
#pragma once

#include <cstdint>

#include "core/target.hpp"
#include "mask/interval_mask.hpp"

namespace pagoda::mask {

// Key k has the bias data[k - first] where first <= k < end, and none elsewhere.
struct AdditiveRow {
  Interval keys;
  const float* data = nullptr;
  int32_t first = 0;
  int32_t end = 0;

  [[nodiscard]] PAGODA_HOST_DEVICE constexpr uint32_t keep32(int32_t column) const {
    return keys.keep32(column);
  }
  // A score in log2 units plus a bias in natural ones.
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr float rewrite(int32_t column, float score) const {
    constexpr float kLog2e = 1.44269504F;
    if (column < first || column >= end) return score;
    return score + data[column - first] * kLog2e;
  }
};

struct AdditiveMask {
  static constexpr MaskClass kClass = MaskClass::kAdditive;
  static constexpr bool kRewritesScores = true;

  IntervalMask interval{};
  // Materialised: element (b, h, row, k) at the strides below (0 broadcasts), keys contiguous.
  // Relative: element (h, k - q + extent), |k - q| <= extent; batch and row strides are unused.
  const float* data = nullptr;
  int64_t sequence_stride = 0;
  int64_t head_stride = 0;
  int64_t row_stride = 0;
  int32_t extent = -1;  // >= 0: relative

  [[nodiscard]] PAGODA_HOST_DEVICE constexpr TileWalk walk(const RowTile& tile,
                                                           TileShape shape) const {
    return interval.walk(tile, shape);
  }
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr TileStatus status(const RowTile& tile, int32_t column,
                                                               int32_t count) const {
    return interval.status(tile, column, count);
  }
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr AdditiveRow row(const RowTile& tile, int32_t row,
                                                             int32_t q_head) const {
    const Interval keys = interval.visible(tile, row);
    if (extent >= 0) return relative_row(keys, tile.position(row), q_head);
    const float* elements =
        data + tile.sequence * sequence_stride + q_head * head_stride + row * row_stride;
    return {keys, elements, 0, tile.seqlen_kv};
  }

 private:
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr AdditiveRow relative_row(Interval keys, int32_t q,
                                                                      int32_t q_head) const {
    // Distances outside the table, and keys outside [0, INT32_MAX], have no entry.
    const int32_t first = q > extent ? q - extent : 0;
    const int32_t end = q < INT32_MAX - extent ? q + extent + 1 : INT32_MAX;
    const int64_t entry = int64_t{first} - q + extent;
    return {keys, data + q_head * head_stride + entry, first, end};
  }
};

static_assert(KernelMask<AdditiveMask>);

}  // namespace pagoda::mask
