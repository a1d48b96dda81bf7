// IntervalMask: causal, windows, chunks, per-sequence padding and their intersections, none
// included. ExpressionMask contains one: no tile outside of it is visited.
#pragma once

#include <cstdint>

#include "arch/memory.hpp"
#include "core/target.hpp"
#include "mask/interval.hpp"
#include "mask/kernel_mask.hpp"
#include "mask/kv_tile_range.hpp"

namespace pagoda::mask {

struct IntervalRow {
  Interval keys;

  [[nodiscard]] PAGODA_HOST_DEVICE constexpr uint32_t keep32(int32_t column) const {
    return keys.keep32(column);
  }
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr float rewrite(int32_t /*column*/, float score) const {
    return score;
  }
};

struct IntervalMask {
  static constexpr bool kRewritesScores = false;

  IntervalRule rule{};
  arch::GlobalPtr<const int32_t> valid_lengths =
      nullptr;  // [batch], >= 0; nullptr = no padding mask

  [[nodiscard]] PAGODA_DEVICE Interval visible(const RowTile& tile, int32_t row) const {
    return rule.visible(tile.position(row), num_keys(tile));
  }
  [[nodiscard]] PAGODA_DEVICE KVTileRange kv_tiles(const RowTile& tile, TileShape shape) const {
    return make_kv_tile_range(visible(tile, tile.first_row),
                              visible(tile, tile.first_row + tile.num_rows - 1), shape);
  }
  [[nodiscard]] PAGODA_DEVICE TileStatus status(const RowTile& tile, int32_t column,
                                                int32_t count) const {
    return tile_status(visible(tile, tile.first_row),
                       visible(tile, tile.first_row + tile.num_rows - 1), column, count);
  }
  [[nodiscard]] PAGODA_DEVICE IntervalRow row(const RowTile& tile, int32_t row,
                                              int32_t /*q_head*/) const {
    return {visible(tile, row)};
  }

 private:
  [[nodiscard]] PAGODA_DEVICE int32_t num_keys(const RowTile& tile) const {
    if (valid_lengths == nullptr) return tile.seqlen_kv;
    const int32_t valid = arch::load_read_only(valid_lengths + tile.sequence);
    return valid < tile.seqlen_kv ? valid : tile.seqlen_kv;
  }
};

static_assert(KernelMask<IntervalMask>);

}  // namespace pagoda::mask
