// EqualShares: the row tiles of a TileGrid divided equally among CTAs (stream-K over row tiles).
// CTA i takes [i, i + 1) * row tiles / CTAs: the end of one row tile, whole ones, the beginning of
// another. A row tile counts as 1 whatever its keys, so that a launch needs no length from device
// memory; shares are equal where row tiles see about as many keys.
//
//   4 row tiles, 6 CTAs   |-------0-------|-------1-------|-------2-------|-------3-------|
//                         |----0----|----1----|----2----|----3----|----4----|----5----|
//                              parts of CTA 1: the last third of row tile 0, and the first of 1
#pragma once

#include <cstdint>

#include "arch/quotient.hpp"
#include "core/target.hpp"

namespace pagoda::schedule {

// The part of a row tile that a CTA computes.
struct SharePart {
  int32_t begin = 0, end = 0;         // KV tiles of the row tile; none: begin == end
  int32_t split = 0, num_splits = 1;  // among the row tile's parts that have KV tiles
  int32_t first_slot = 0;             // of the row tile's partial results, below row tiles + CTAs
};

class EqualShares {
 public:
  // Of row tiles, or of the KV tiles of one, and CTAs.
  static constexpr int64_t kMostProduct = int64_t{1} << 30;

  PAGODA_HOST_DEVICE constexpr EqualShares(int32_t row_tiles, int32_t ctas, arch::Divisor by_ctas)
      : row_tiles_(row_tiles), ctas_(ctas), by_ctas_(by_ctas) {}

  // The row tiles [first, end) of which a CTA takes a part.
  [[nodiscard]] PAGODA_HOST_DEVICE int32_t first_tile(int32_t cta) const {
    return by_ctas_.quotient(cta * row_tiles_);
  }
  [[nodiscard]] PAGODA_HOST_DEVICE int32_t end_tile(int32_t cta) const {
    return by_ctas_.quotient((cta + 1) * row_tiles_ - 1) + 1;
  }

  // What `cta` takes of the `kv_tiles` of `row_tile`, one of those above. Where they are too few
  // for one in each whole share, the row tile's first CTA takes them all.
  [[nodiscard]] PAGODA_DEVICE SharePart part(int32_t row_tile, int32_t cta,
                                             int32_t kv_tiles) const {
    const int32_t first = arch::quotient(row_tile * ctas_, row_tiles_);
    const int32_t last = arch::quotient((row_tile + 1) * ctas_ - 1, row_tiles_);
    SharePart part;
    if (first == last || kv_tiles * row_tiles_ < ctas_) {
      if (cta == first) part.end = kv_tiles;
      return part;
    }
    part.begin = limit(row_tile, cta, kv_tiles);
    part.end = limit(row_tile, cta + 1, kv_tiles);
    const int32_t empty_first = limit(row_tile, first + 1, kv_tiles) == 0 ? 1 : 0;
    const int32_t empty_last = limit(row_tile, last, kv_tiles) == kv_tiles ? 1 : 0;
    part.split = cta - first - empty_first;
    part.num_splits = last - first + 1 - empty_first - empty_last;
    part.first_slot = row_tile + first + empty_first;
    return part;
  }

 private:
  // The KV tile of a row tile at which the share of `cta` begins.
  [[nodiscard]] PAGODA_HOST_DEVICE int32_t limit(int32_t row_tile, int32_t cta,
                                                 int32_t kv_tiles) const {
    const int32_t at = cta * row_tiles_ - row_tile * ctas_;  // in row tiles, times ctas_
    if (at <= 0) return 0;
    return at >= ctas_ ? kv_tiles : by_ctas_.quotient(at * kv_tiles);
  }

  int32_t row_tiles_ = 0, ctas_ = 0;
  arch::Divisor by_ctas_;
};

}  // namespace pagoda::schedule
