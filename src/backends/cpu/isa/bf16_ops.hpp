// Shared by the two bf16 units: rows and panels of bf16 pairs, and probabilities rounded to bf16.
// Exact for bf16 and e4m3 sources, the only ones that these units get.
#pragma once

#include <cstdint>
#include <immintrin.h>

#include "backends/cpu/isa/avx512_convert.hpp"
#include "backends/cpu/isa/direct.hpp"
#include "backends/cpu/isa/pack.hpp"
#include "backends/cpu/isa/softmax.hpp"

namespace pagoda::cpu {
namespace {

constexpr int kBf16Align = 32;  // one AMX tile row, and two panels of V: 32 bf16

// e4m3 to bf16, exactly: exponent bias 127 instead of 7, four more bits of mantissa. Magnitudes
// below 8 are subnormal (n * 2^-9) and 0x7f is NaN: those come from a table, by their low 5 bits.
inline __m512i f8e4m3_to_bf16(__m256i bytes) {
  alignas(64) static constexpr uint16_t kTable[32] = {
      0x0000, 0x3b00, 0x3b80, 0x3bc0, 0x3c00, 0x3c20, 0x3c40, 0x3c60, 0, 0, 0, 0, 0, 0, 0, 0,
      0,      0,      0,      0,      0,      0,      0,      0,      0, 0, 0, 0, 0, 0, 0, 0x7fc0};
  const __m512i wide = _mm512_cvtepu8_epi16(bytes);
  const __m512i magnitude = _mm512_and_si512(wide, _mm512_set1_epi16(0x7f));
  const __m512i sign = _mm512_slli_epi16(_mm512_andnot_si512(magnitude, wide), 8);
  const __m512i normal =
      _mm512_add_epi16(_mm512_slli_epi16(magnitude, 4), _mm512_set1_epi16(120 << 7));
  // Neither in [8, 0x7e]: one unsigned comparison.
  const __mmask32 special = _mm512_cmpgt_epu16_mask(
      _mm512_sub_epi16(magnitude, _mm512_set1_epi16(8)), _mm512_set1_epi16(0x7e - 8));
  const __m512i value =
      _mm512_mask_permutexvar_epi16(normal, special, magnitude, _mm512_load_si512(kTable));
  return _mm512_or_si512(value, sign);
}

// 32 elements as bf16; only the first `n` are read, the others are 0.
inline __m512i load_bf16(const void* src, int element, int first, int n) {
  const auto keep = n >= 32 ? 0xffffffffU : (n <= 0 ? 0U : (1U << n) - 1U);
  if (element == kElementBF16) {
    return _mm512_maskz_loadu_epi16(keep, static_cast<const uint16_t*>(src) + first);
  }
  return f8e4m3_to_bf16(_mm256_maskz_loadu_epi8(keep, static_cast<const uint8_t*>(src) + first));
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
    prefetch_after(source, key);
    prefetch_after(source, key + 1);
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

// Two rows of V interleave as in bf16_pack_v.
struct Bf16Words {
  static constexpr int kRowElements = 32;
  static constexpr int kKeys = 2;
  static constexpr int kVecs = 2;
  static constexpr int kMostRows = 4;
  static constexpr int kAccumulators = 16;
  template <int Element>
  static __m512i load(const void* row, int first, int n) {
    return load_bf16(row, Element, first, n);
  }
  static __m512i load_words(const float* q) { return _mm512_loadu_si512(q); }
  static __m512i load_first_words(const float* q, int /*n*/) { return load_words(q); }
  template <int Element, int Keys>
  static void columns(const void* const* rows, int first, int n, Vec* out) {
    const __m512i even = load_bf16(rows[0], Element, first, n);
    const __m512i odd =
        Keys == 2 ? load_bf16(rows[Keys - 1], Element, first, n) : _mm512_setzero_si512();
    out[0].v = _mm512_castsi512_ps(_mm512_unpacklo_epi16(even, odd));
    out[1].v = _mm512_castsi512_ps(_mm512_unpackhi_epi16(even, odd));
  }
  static __m512i broadcast(const float* word) { return _mm512_castps_si512(_mm512_set1_ps(*word)); }
  static Vec multiply_add(__m512i a, __m512i b, Vec c) {
    return {_mm512_dpbf16_ps(c.v, reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b))};
  }
  static Vec multiply_add(__m512i a, Vec b, Vec c) {
    return multiply_add(a, _mm512_castps_si512(b.v), c);
  }
};

inline void bf16_direct_scores(const DirectScores* s) {
  if (s->k->element == kElementBF16) return direct_scores_of<Bf16Words, kElementBF16>(s);
  direct_scores_of<Bf16Words, kElementF8E4M3>(s);
}

inline void bf16_direct_output(const DirectOutput* t) {
  if (t->v->element == kElementBF16) return direct_output_of<Bf16Words, kElementBF16>(t);
  direct_output_of<Bf16Words, kElementF8E4M3>(t);
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
