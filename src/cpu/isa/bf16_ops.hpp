// What the two bf16 units share: rows and panels of bf16 pairs, and probabilities rounded to bf16.
// Exact for bf16 and e4m3 sources; others do not come here.
#pragma once

#include <cstdint>
#include <immintrin.h>

#include "cpu/isa/avx512_convert.hpp"
#include "cpu/isa/pack.hpp"
#include "cpu/isa/softmax.hpp"

namespace pagoda::cpu {
namespace {

constexpr int kBf16DepthAlign = 32;  // one AMX tile row: 32 bf16

// 32 elements as bf16; only the first `n` are read, the others are 0.
inline __m512i load_bf16(const void* src, int element, int first, int n) {
  if (element == kElementBF16) {
    const auto keep = n >= 32 ? 0xffffffffU : (n <= 0 ? 0U : (1U << n) - 1U);
    return _mm512_maskz_loadu_epi16(keep, static_cast<const uint16_t*>(src) + first);
  }
  const __m256i lo = f32_to_bf16(load_elements(src, element, first, Vec::inside(0, n)));
  const __m256i hi = f32_to_bf16(load_elements(src, element, first + 16, Vec::inside(0, n - 16)));
  return _mm512_inserti64x4(_mm512_castsi256_si512(lo), hi, 1);
}

struct Bf16Convert {
  static constexpr int kWordElements = 2;
  static void row(void* dst, const void* src, int element, int width, int padded_width) {
    for (int i = 0; i < padded_width; i += 32) {
      _mm512_storeu_si512(static_cast<uint16_t*>(dst) + i, load_bf16(src, element, i, width - i));
    }
  }
};

inline void bf16_pack_q(void* dst, const void* row, int element, int width, int padded_width) {
  Bf16Convert::row(dst, row, element, width, padded_width);
}

// Two rows' columns interleaved: 16 pairs (even key, odd key) a panel.
inline void bf16_pack_v(void* panels, const PanelSource* source, int64_t panel_words) {
  const int padded_count = (source->count + 31) / 32 * 32;
  auto* dst = static_cast<float*>(panels);
  const __m512i zero = _mm512_setzero_si512();
  const __m512i first_half =
      _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40, 8, 39, 7, 38, 6,
                       37, 5, 36, 4, 35, 3, 34, 2, 33, 1, 32, 0);
  const __m512i second_half = _mm512_add_epi16(first_half, _mm512_set1_epi16(16));
  const int num_panels = (source->width + kPanel - 1) / kPanel;
  for (int key = 0; key < padded_count; key += 2) {
    prefetch_row(source, key + kPrefetchRows);
    prefetch_row(source, key + kPrefetchRows + 1);
    for (int p = 0; p < num_panels; p += 2) {
      const int column = p * kPanel;
      const int n = source->width - column;
      const __m512i even =
          key < source->count ? load_bf16(source->rows[key], source->element, column, n) : zero;
      const __m512i odd = key + 1 < source->count
                              ? load_bf16(source->rows[key + 1], source->element, column, n)
                              : zero;
      float* out = dst + p * panel_words + static_cast<int64_t>(key / 2) * kPanel;
      _mm512_storeu_si512(out, _mm512_permutex2var_epi16(even, first_half, odd));
      if (p + 1 < num_panels) {
        _mm512_storeu_si512(out + panel_words, _mm512_permutex2var_epi16(even, second_half, odd));
      }
    }
  }
}

struct Bf16Probabilities {
  static constexpr int kBytes = 2;
  static constexpr bool kIsCoarse = true;
  static void store(void* row, int i, Vec a, Vec b) {
    _mm512_storeu_si512(static_cast<uint16_t*>(row) + i,
                        reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(b.v, a.v)));
  }
};

}  // namespace
}  // namespace pagoda::cpu
