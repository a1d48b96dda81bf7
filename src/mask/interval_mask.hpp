// IntervalMask: causal, windows, chunks, per-sequence padding and their intersections, none
// included. ExpressionMask contains one: no tile outside of it is visited.
#pragma once

#include <cstdint>

#include "arch/memory.hpp"
#include "core/target.hpp"
#include "mask/interval.hpp"
#include "mask/kv_tile_range.hpp"

namespace pagoda::mask {

struct IntervalMask {
  IntervalRule rule{};
  // [batch], >= 0; nullptr = no padding mask.
  arch::GlobalPtr<const int32_t> valid_lengths = nullptr;

  // The keys that row `row` of the sequence sees.
  [[nodiscard]] PAGODA_DEVICE Interval visible(const RowTile& tile, int32_t row) const {
    return rule.visible(tile.position(row), num_keys(tile));
  }
  // The KV tiles of a tile of rows: every visible key lies in one.
  [[nodiscard]] PAGODA_DEVICE KVTileRange kv_tiles(const RowTile& tile, TileShape shape) const {
    return make_kv_tile_range(visible(tile, tile.first_row),
                              visible(tile, tile.first_row + tile.num_rows - 1), shape);
  }

 private:
  [[nodiscard]] PAGODA_DEVICE int32_t num_keys(const RowTile& tile) const {
    if (valid_lengths == nullptr) return tile.seqlen_kv;
    const int32_t valid = arch::load_read_only(valid_lengths + tile.sequence);
    return valid < tile.seqlen_kv ? valid : tile.seqlen_kv;
  }
};

}  // namespace pagoda::mask
