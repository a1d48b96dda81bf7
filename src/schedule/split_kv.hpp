// SplitKV: splits the visible keys of a row tile into parts for several CTAs or workers. The size
// of a part follows from the visible keys, not from the length of the cache: a window of 512 keys
// in a cache of 100000 has nothing to split.
#pragma once

#include <cstdint>

#include "arch/quotient.hpp"
#include "core/target.hpp"
#include "mask/interval.hpp"

namespace pagoda::schedule {

struct SplitKV {
  int32_t begin = 0;
  int32_t end = 0;
  int32_t part_keys = 1;
  int32_t num_parts = 0;  // that hold keys

  // Part i, for any i >= 0: a grid may be launched with more parts than there are. The others are
  // empty: [end, end).
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr mask::Interval part(int32_t i) const {
    if (i >= num_parts) return {end, end};
    const int32_t first = begin + i * part_keys;
    return {first, end - first < part_keys ? end : first + part_keys};
  }
};

// Parts of `part_keys` keys each, the last of what is left.
[[nodiscard]] PAGODA_HOST_DEVICE constexpr SplitKV parts_of(int32_t begin, int32_t end,
                                                            int32_t part_keys) {
  return {begin, end, part_keys, end <= begin ? 0 : (end - begin - 1) / part_keys + 1};
}

// Splits keys [begin, end) into at most `parts` parts of whole KV tiles, each but the last of
// `least_tiles` or more. Tiles count from `begin`, the start column of the row tile's KV tiles.
// `by_parts` divides by `parts`.
[[nodiscard]] PAGODA_HOST_DEVICE constexpr SplitKV split_kv(int32_t begin, int32_t end,
                                                            int32_t parts, int32_t tile_keys,
                                                            arch::Divisor by_parts,
                                                            int32_t least_tiles = 1) {
  if (end <= begin) return {begin, end, tile_keys, 0};
  const int32_t tiles = (end - begin - 1) / tile_keys + 1;
  const int32_t of_all = by_parts.quotient(tiles - 1) + 1;
  const int32_t part_tiles = of_all < least_tiles ? least_tiles : of_all;
  // Mostly all parts hold keys, and nothing is left to divide.
  const bool all_hold_keys = (parts - 1) * part_tiles < tiles;
  const int32_t num_parts = all_hold_keys ? parts : (tiles - 1) / part_tiles + 1;
  // Where a part would exceed 32 bits, one part holds all keys.
  if (part_tiles > INT32_MAX / tile_keys) return {begin, end, INT32_MAX, 1};
  return {begin, end, part_tiles * tile_keys, num_parts};
}
[[nodiscard]] constexpr SplitKV split_kv(int32_t begin, int32_t end, int32_t parts,
                                         int32_t tile_keys, int32_t least_tiles = 1) {
  return split_kv(begin, end, parts, tile_keys, arch::Divisor(parts), least_tiles);
}

}  // namespace pagoda::schedule
