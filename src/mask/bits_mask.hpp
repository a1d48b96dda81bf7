// BitsMask: a materialised mask of one bit per (row, key), such as the tree of a speculative
// decoder, inside an interval. Its tiles are all partial: the words are not searched beforehand.
#pragma once

#include <cstdint>

#include "core/target.hpp"
#include "mask/interval_mask.hpp"

namespace pagoda::mask {

struct BitsRow {
  Interval keys;
  const uint32_t* words = nullptr;  // bit k % 32 of words[k / 32] is key k
  int32_t num_words = 0;

  [[nodiscard]] PAGODA_HOST_DEVICE constexpr uint32_t keep32(int32_t column) const {
    const uint32_t inside = keys.keep32(column);
    if (inside == 0) return 0;  // may lie past the words
    const int32_t index = column / 32;
    const auto shift = static_cast<uint32_t>(column % 32);
    const uint32_t low = index < num_words ? words[index] : 0U;
    if (shift == 0) return low & inside;
    const uint32_t high = index + 1 < num_words ? words[index + 1] : 0U;
    return ((low >> shift) | (high << (32U - shift))) & inside;
  }
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr float rewrite(int32_t /*column*/, float score) const {
    return score;
  }
};

struct BitsMask {
  static constexpr MaskClass kClass = MaskClass::kBits;
  static constexpr bool kRewritesScores = false;

  IntervalMask interval{};
  const uint32_t* words = nullptr;       // row i of sequence b: ceil(seqlen_kv / 32) words from
  const int64_t* row_offsets = nullptr;  // row_offsets[b] + i * ceil(seqlen_kv / 32)

  [[nodiscard]] PAGODA_HOST_DEVICE constexpr TileWalk walk(const RowTile& tile,
                                                           TileShape shape) const {
    return interval.walk(tile, shape).all_partial();
  }
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr TileStatus status(const RowTile& tile, int32_t column,
                                                               int32_t count) const {
    return interval.status(tile, column, count) == TileStatus::kSkip ? TileStatus::kSkip
                                                                     : TileStatus::kPartial;
  }
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr BitsRow row(const RowTile& tile, int32_t row,
                                                         int32_t /*q_head*/) const {
    const int32_t num_words = tile.seqlen_kv / 32 + (tile.seqlen_kv % 32 != 0 ? 1 : 0);
    return {interval.visible(tile, row),
            words + row_offsets[tile.sequence] + int64_t{row} * num_words, num_words};
  }
};

static_assert(KernelMask<BitsMask>);

}  // namespace pagoda::mask
