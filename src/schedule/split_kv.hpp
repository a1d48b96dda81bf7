// SplitKV: splits the visible keys of a row tile into parts for several CTAs or workers. The size
// of a part follows from the visible keys, not from the length of the cache: a window of 512 keys
// in a cache of 100000 has nothing to split.
#pragma once

#include <cstdint>

#include "core/target.hpp"
#include "mask/interval.hpp"

namespace pagoda::schedule {

struct SplitKV {
  int32_t begin = 0;
  int32_t end = 0;
  int32_t part_keys = 1;

  // Parts that hold keys.
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int32_t num_parts() const {
    return end <= begin ? 0 : (end - begin - 1) / part_keys + 1;
  }
  // Part i, for any i >= 0: a grid may be launched with more parts than there are. The others are
  // empty: [end, end).
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr mask::Interval part(int32_t i) const {
    if (i >= num_parts()) return {end, end};
    const int32_t first = begin + i * part_keys;
    return {first, end - first < part_keys ? end : first + part_keys};
  }
};

// Splits keys [begin, end) into at most `parts` parts of whole KV tiles. Tiles count from `begin`,
// the start column of the row tile's KV tiles.
[[nodiscard]] PAGODA_HOST_DEVICE constexpr SplitKV split_kv(int32_t begin, int32_t end,
                                                            int32_t parts, int32_t tile_keys) {
  const int32_t keys = end > begin ? end - begin : 0;
  const int32_t tiles = keys == 0 ? 1 : (keys - 1) / tile_keys + 1;
  const int32_t part_tiles = (tiles - 1) / parts + 1;
  // Where a part would exceed 32 bits, one part holds all keys.
  const int32_t part_keys = part_tiles > INT32_MAX / tile_keys ? INT32_MAX : part_tiles * tile_keys;
  return {begin, end, part_keys};
}

}  // namespace pagoda::schedule
