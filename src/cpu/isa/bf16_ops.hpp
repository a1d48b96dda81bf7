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

constexpr int kBf16Align = 32;  // one AMX tile row, and two panels of V: 32 bf16

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

// Two rows' columns interleaved, 32 columns into two panels. The unpack instructions work within
// 128-bit lanes, so the first panel holds columns 8i + 0..3 and the second 8i + 4..7 (i = 0..3):
// one shuffle a panel instead of three. bf16_store_row() undoes it.
inline void bf16_pack_v(void* panels, const PanelSource* source, int64_t panel_words) {
  const int padded_count = (source->count + 31) / 32 * 32;
  const __m512i zero = _mm512_setzero_si512();
  for (int key = 0; key < padded_count; key += 2) {
    prefetch_row(source, key + kPrefetchRows);
    prefetch_row(source, key + kPrefetchRows + 1);
    auto* out = static_cast<float*>(panels) + static_cast<int64_t>(key / 2) * kPanel;
    for (int column = 0; column < source->width; column += 32) {
      const int n = source->width - column;
      const __m512i even =
          key < source->count ? load_bf16(source->rows[key], source->element, column, n) : zero;
      const __m512i odd = key + 1 < source->count
                              ? load_bf16(source->rows[key + 1], source->element, column, n)
                              : zero;
      _mm512_storeu_si512(out, _mm512_unpacklo_epi16(even, odd));
      _mm512_storeu_si512(out + panel_words, _mm512_unpackhi_epi16(even, odd));
      out += 2 * panel_words;
    }
  }
}

inline void bf16_store_row(void* dst, int element, const float* src, int n, float factor) {
  const __m512i first = _mm512_setr_epi32(0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23);
  const __m512i second = _mm512_add_epi32(first, _mm512_set1_epi32(8));
  alignas(64) float row[32];
  for (int i = 0; i < n; i += 32) {
    const __m512 a = _mm512_loadu_ps(src + i);
    const __m512 b = _mm512_loadu_ps(src + i + 16);
    _mm512_store_ps(row, _mm512_permutex2var_ps(a, first, b));
    _mm512_store_ps(row + 16, _mm512_permutex2var_ps(a, second, b));
    store_row(static_cast<char*>(dst) + i * element_bytes(element), element, row,
              n - i < 32 ? n - i : 32, factor);
  }
}

struct Bf16Probabilities {
  static constexpr int kBytes = 2;
  // 2^x to 3e-6 relative: enough where the result is rounded to bf16 (4e-3). 2^(x - floor(x)) by a
  // degree-4 minimax polynomial on [0, 1) with constant term 1; scalef multiplies by 2^floor(x) and
  // underflows by itself. 8 % of a prefill against clamping and shifting (SPR).
  static Vec exp2(Vec x) {
    constexpr int kFloor = 1;  // fraction bits 0, round down
    const Vec f = {_mm512_reduce_ps(x.v, kFloor)};
    Vec p = Vec::fma(Vec::set(1.342668437e-2F), f, Vec::set(5.224247400e-2F));
    p = Vec::fma(p, f, Vec::set(2.412802049e-1F));
    p = Vec::fma(p, f, Vec::set(6.930448449e-1F));
    p = Vec::fma(p, f, Vec::set(1.0F));
    return {_mm512_scalef_ps(p.v, x.v)};
  }
  static void store(void* row, int i, Vec a, Vec b) {
    _mm512_storeu_si512(static_cast<uint16_t*>(row) + i,
                        reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(b.v, a.v)));
  }
};

}  // namespace
}  // namespace pagoda::cpu
