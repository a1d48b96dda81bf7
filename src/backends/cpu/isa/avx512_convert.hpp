// Conversions and the 16 x 16 transpose for AVX-512. Included by the units of AVX-512 and above.
#pragma once

#include <cstdint>
#include <immintrin.h>

#include "backends/cpu/isa/scalar_convert.hpp"
#include "backends/cpu/isa/vec_avx512.hpp"

namespace pagoda::cpu {
namespace {

// Words [first, first + 16) of 16 rows to 16 columns, `ld` words apart.
inline void transpose16(float* dst, const float* const* rows, int first, int ld = 16) {
  __m512 r[16];
  __m512 t[16];
  for (int i = 0; i < 16; ++i) r[i] = _mm512_loadu_ps(rows[i] + first);
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_ps(r[i], r[i + 1]);
    t[i + 1] = _mm512_unpackhi_ps(r[i], r[i + 1]);
  }
  for (int i = 0; i < 16; i += 4) {
    r[i] = _mm512_shuffle_ps(t[i], t[i + 2], 0x44);
    r[i + 1] = _mm512_shuffle_ps(t[i], t[i + 2], 0xee);
    r[i + 2] = _mm512_shuffle_ps(t[i + 1], t[i + 3], 0x44);
    r[i + 3] = _mm512_shuffle_ps(t[i + 1], t[i + 3], 0xee);
  }
  // r[4g + c], 128-bit lane l = rows 4g..4g+3 of column 4l + c.
  for (int c = 0; c < 4; ++c) {
    const __m512 lo01 = _mm512_shuffle_f32x4(r[c], r[4 + c], 0x44);
    const __m512 hi01 = _mm512_shuffle_f32x4(r[c], r[4 + c], 0xee);
    const __m512 lo23 = _mm512_shuffle_f32x4(r[8 + c], r[12 + c], 0x44);
    const __m512 hi23 = _mm512_shuffle_f32x4(r[8 + c], r[12 + c], 0xee);
    _mm512_storeu_ps(dst + (0 + c) * ld, _mm512_shuffle_f32x4(lo01, lo23, 0x88));
    _mm512_storeu_ps(dst + (4 + c) * ld, _mm512_shuffle_f32x4(lo01, lo23, 0xdd));
    _mm512_storeu_ps(dst + (8 + c) * ld, _mm512_shuffle_f32x4(hi01, hi23, 0x88));
    _mm512_storeu_ps(dst + (12 + c) * ld, _mm512_shuffle_f32x4(hi01, hi23, 0xdd));
  }
}

// e4m3 as binary16 with the same bits has an exponent bias of 15 instead of 7: value * 2^8, exact,
// subnormals included. The code 0x7f is NaN.
inline __m512 f8e4m3_to_f32(__m128i bytes) {
  const __m256i wide = _mm256_cvtepu8_epi16(bytes);
  const __m256i magnitude = _mm256_and_si256(wide, _mm256_set1_epi16(0x7f));
  const __m256i sign = _mm256_slli_epi16(_mm256_and_si256(wide, _mm256_set1_epi16(0x80)), 8);
  const __mmask16 nan = _mm256_cmpeq_epi16_mask(magnitude, _mm256_set1_epi16(0x7f));
  __m256i half = _mm256_or_si256(_mm256_slli_epi16(magnitude, 7), sign);
  half = _mm256_mask_mov_epi16(half, nan, _mm256_set1_epi16(0x7e00));
  return _mm512_mul_ps(_mm512_cvtph_ps(half), _mm512_set1_ps(256.0F));
}

inline __m512 bf16_to_f32(__m256i bits) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
}

// Lanes of `keep` of 16 elements from `first`; the others are 0 and their memory is not read.
inline __m512 load_elements(const void* src, int element, int first, __mmask16 keep) {
  switch (element) {
    case kElementF32: return _mm512_maskz_loadu_ps(keep, static_cast<const float*>(src) + first);
    case kElementF16:
      return _mm512_cvtph_ps(
          _mm256_maskz_loadu_epi16(keep, static_cast<const uint16_t*>(src) + first));
    case kElementBF16:
      return bf16_to_f32(_mm256_maskz_loadu_epi16(keep, static_cast<const uint16_t*>(src) + first));
    default:
      return f8e4m3_to_f32(_mm_maskz_loadu_epi8(keep, static_cast<const uint8_t*>(src) + first));
  }
}

template <int Element>
inline Vec load_widened(const void* src, int first, int n) {
  return {load_elements(src, Element, first, Vec::inside(0, n))};
}

inline void convert_to_f32(float* dst, const void* src, int element, int n) {
  for (int i = 0; i < n; i += 16) {
    const __mmask16 keep = Vec::inside(0, n - i);
    _mm512_mask_storeu_ps(dst + i, keep, load_elements(src, element, i, keep));
  }
}

// Round to nearest even; NaN stays NaN.
inline __m256i f32_to_bf16(__m512 x) {
  const __m512i bits = _mm512_castps_si512(x);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
  const __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
  const __m512i result = _mm512_mask_or_epi32(rounded, nan, bits, _mm512_set1_epi32(0x400000));
  return _mm512_cvtepi32_epi16(_mm512_srli_epi32(result, 16));
}

inline void store_row(void* dst, int element, const float* src, int n, float factor) {
  const __m512 f = _mm512_set1_ps(factor);
  for (int i = 0; i < n; i += 16) {
    const __mmask16 keep = Vec::inside(0, n - i);
    const __m512 x = _mm512_mul_ps(_mm512_maskz_loadu_ps(keep, src + i), f);
    if (element == kElementF32) {
      _mm512_mask_storeu_ps(static_cast<float*>(dst) + i, keep, x);
    } else {
      const __m256i half = element == kElementF16
                               ? _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)
                               : f32_to_bf16(x);
      _mm256_mask_storeu_epi16(static_cast<uint16_t*>(dst) + i, keep, half);
    }
  }
}

}  // namespace
}  // namespace pagoda::cpu
