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
  static constexpr int kElement = kElementBF16;
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

inline __m512i interleave(__m256i even, __m256i odd) {
  return _mm512_or_si512(_mm512_cvtepu16_epi32(even),
                         _mm512_slli_epi32(_mm512_cvtepu16_epi32(odd), 16));
}

// Two rows' columns interleaved: 16 pairs (even key, odd key) a panel.
inline void bf16_pack_v(void* panels, const PanelSource* source, int64_t panel_words) {
  const int padded_count = (source->count + 31) / 32 * 32;
  auto* dst = static_cast<float*>(panels);
  const __m512i zero = _mm512_setzero_si512();
  const int num_panels = (source->width + kPanel - 1) / kPanel;
  for (int key = 0; key < padded_count; key += 2) {
    prefetch_row(source, key);
    prefetch_row(source, key + 1);
    for (int p = 0; p < num_panels; p += 2) {
      const int column = p * kPanel;
      const int n = source->width - column;
      const __m512i even =
          key < source->count ? load_bf16(source->rows[key], source->element, column, n) : zero;
      const __m512i odd = key + 1 < source->count
                              ? load_bf16(source->rows[key + 1], source->element, column, n)
                              : zero;
      float* out = dst + p * panel_words + static_cast<int64_t>(key / 2) * kPanel;
      _mm512_storeu_si512(out,
                          interleave(_mm512_castsi512_si256(even), _mm512_castsi512_si256(odd)));
      if (p + 1 < num_panels) {
        _mm512_storeu_si512(out + panel_words, interleave(_mm512_extracti64x4_epi64(even, 1),
                                                          _mm512_extracti64x4_epi64(odd, 1)));
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
