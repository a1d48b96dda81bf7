// Packing of K and V into panels, over the including unit's Convert (rows of any element type to
// words of the compute type) and transpose16 (16 rows of 16 words).
#pragma once

#include <cstdint>

#include "cpu/isa/tile_ops.hpp"

namespace pagoda::cpu {
namespace {

constexpr int kPrefetchRows = 24;  // how far ahead rows are asked for; pages are scattered

inline int element_bytes(int element) {
  return element == kElementF32 ? 4 : (element == kElementF8E4M3 ? 1 : 2);
}

inline void prefetch_row(const PanelSource* source, int row) {
  if (row >= source->count) return;
  const char* p = static_cast<const char*>(source->rows[row]);
  const int bytes = source->width * element_bytes(source->element);
  for (int i = 0; i < bytes; i += 64) __builtin_prefetch(p + i);
}

// `scratch` holds 16 converted rows. Convert::kWordElements elements make a word.
template <typename Convert>
void pack_k_panels(void* panels, const PanelSource* source, int padded_width, void* scratch) {
  const int words = padded_width / Convert::kWordElements;
  const int padded_count = (source->count + 31) / 32 * 32;
  auto* dst = static_cast<float*>(panels);
  auto* rows = static_cast<float*>(scratch);  // [16][words]
  for (int key0 = 0; key0 < padded_count; key0 += kPanel) {
    for (int i = 0; i < kPanel; ++i) {
      prefetch_row(source, key0 + i + kPrefetchRows);
      float* row = rows + i * words;
      if (key0 + i < source->count) {
        Convert::row(row, source->rows[key0 + i], source->element, source->width, padded_width);
      } else {
        for (int w = 0; w < words; ++w) row[w] = 0.0F;
      }
    }
    int w = 0;
    for (; w + 16 <= words; w += 16) transpose16(dst + w * kPanel, rows + w, words);
    for (; w < words; ++w) {
      for (int i = 0; i < kPanel; ++i) dst[w * kPanel + i] = rows[i * words + w];
    }
    dst += static_cast<int64_t>(words) * kPanel;
  }
}

}  // namespace
}  // namespace pagoda::cpu
