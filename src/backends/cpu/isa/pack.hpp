// Packing of K and V into panels, over the including unit's Convert (rows of any element type to
// words of the compute type) and transpose16 (16 rows of 16 words).
#pragma once

#include <cstdint>

#include "backends/cpu/isa/tile_ops.hpp"

namespace pagoda::cpu {
namespace {

inline int element_bytes(int element) {
  return element == kElementF32 ? 4 : (element == kElementF8E4M3 ? 1 : 2);
}

// Prefetches a row that is needed some rows later: the hardware prefetcher does not follow the
// short rows of scattered pages or of one head among several.
inline void prefetch_after(const PanelSource* source, int row) {
  row += source->ahead;
  if (source->ahead == 0 || row >= source->known) return;
  const char* p = static_cast<const char*>(source->rows[row]);
  const int bytes = source->width * element_bytes(source->element);
  for (int i = 0; i < bytes; i += 64) __builtin_prefetch(p + i);
}

// `scratch` holds 16 rows of words. Convert::kWordElements elements make a word; rows that already
// are words of the compute type, unpadded, are transposed in place.
template <typename Convert>
void pack_k_panels(void* panels, const PanelSource* source, int padded_width, void* scratch) {
  const int words = padded_width / Convert::kWordElements;
  const int padded_count = (source->count + 31) / 32 * 32;
  const bool is_direct = source->element == Convert::kElement && source->width == padded_width;
  auto* dst = static_cast<float*>(panels);
  auto* converted = static_cast<float*>(scratch);  // [16][words]
  for (int key0 = 0; key0 < padded_count; key0 += kPanel) {
    const float* rows[kPanel];
    for (int i = 0; i < kPanel; ++i) {
      float* row = converted + i * words;
      rows[i] = row;
      if (key0 + i >= source->count) {
        for (int w = 0; w < words; ++w) row[w] = 0.0F;
        continue;
      }
      prefetch_after(source, key0 + i);
      const void* from = source->rows[key0 + i];
      if (is_direct) {
        rows[i] = static_cast<const float*>(from);
      } else {
        Convert::row(row, from, source->element, source->width, padded_width);
      }
    }
    int w = 0;
    for (; w + 16 <= words; w += 16) transpose16(dst + w * kPanel, rows, w);
    for (; w < words; ++w) {
      for (int i = 0; i < kPanel; ++i) dst[w * kPanel + i] = rows[i][w];
    }
    dst += static_cast<int64_t>(words) * kPanel;
  }
}

}  // namespace
}  // namespace pagoda::cpu
