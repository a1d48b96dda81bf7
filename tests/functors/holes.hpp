// Holes: a mask whose intervals of visible() are only bounds: keep() excludes keys inside of them,
// of every row others. visible() can be wrong for few rows, as the warps of a kernel ask, and right
// for whole work tiles.
#pragma once

#include "pagoda/functor.hpp"

struct Holes {
  enum Lie : int32_t { kNone, kLeavesKeysOut, kCallsMaskedKeysUnmasked };
  int32_t lie = kNone;
  static constexpr int32_t kFew = 16, kPrefix = 50;
  static constexpr int32_t kNear = 40, kFar = 200, kFarthest = 260;  // distances

  [[nodiscard]] PAGODA_FUNCTOR bool keep(const pagoda::QueryRow& row, int32_t key) const {
    const int32_t distance = row.position - key;
    if (distance >= kNear && distance <= kFar) return true;
    if (key < kPrefix) return key % 2 == 0;
    return distance >= 0 && distance <= kFarthest && (row.position + key) % 3 != 0;
  }
  [[nodiscard]] PAGODA_FUNCTOR pagoda::VisibleKeys visible(const pagoda::QueryRows& rows) const {
    const int32_t first = rows.first_position, last = rows.last_position();
    pagoda::VisibleKeys seen{.keys = {first - kFarthest, last + 1},
                             .prefix = {0, kPrefix},
                             .unmasked = {last - kFar, first - kNear + 1}};
    if (rows.num_rows > kFew) return seen;
    if (lie == kLeavesKeysOut) seen.keys.begin = last - kNear;
    if (lie == kCallsMaskedKeysUnmasked) seen.unmasked = seen.keys;
    return seen;
  }
};
