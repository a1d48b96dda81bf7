// The fp32 tile operations for AVX2, FMA and F16C.
#if defined(__x86_64__)

#include "backends/cpu/isa/scalar_convert.hpp"
#include "backends/cpu/isa/vec_avx2.hpp"

namespace pagoda::cpu {
namespace {

constexpr int kF32Rows = 4;
constexpr int kF32Accumulators = 8;

inline void transpose8(float* dst, const float* const* rows, int first) {
  __m256 r[8];
  __m256 t[8];
  for (int i = 0; i < 8; ++i) r[i] = _mm256_loadu_ps(rows[i] + first);
  for (int i = 0; i < 8; i += 2) {
    t[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
    t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
  }
  for (int i = 0; i < 8; i += 4) {
    r[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44);
    r[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xee);
    r[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44);
    r[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xee);
  }
  for (int i = 0; i < 4; ++i) {
    _mm256_storeu_ps(dst + i * 16, _mm256_permute2f128_ps(r[i], r[i + 4], 0x20));
    _mm256_storeu_ps(dst + (i + 4) * 16, _mm256_permute2f128_ps(r[i], r[i + 4], 0x31));
  }
}

inline void transpose16(float* dst, const float* const* rows, int first) {
  transpose8(dst, rows, first);
  transpose8(dst + 8, rows + 8, first);
  transpose8(dst + 8 * 16, rows, first + 8);
  transpose8(dst + 8 * 16 + 8, rows + 8, first + 8);
}

// See f8e4m3_to_f32 in avx512_convert.hpp.
inline __m256 f8e4m3_to_f32(__m128i bytes) {
  const __m128i wide = _mm_cvtepu8_epi16(bytes);
  const __m128i magnitude = _mm_and_si128(wide, _mm_set1_epi16(0x7f));
  const __m128i sign = _mm_slli_epi16(_mm_and_si128(wide, _mm_set1_epi16(0x80)), 8);
  const __m128i nan = _mm_cmpeq_epi16(magnitude, _mm_set1_epi16(0x7f));
  const __m128i half = _mm_or_si128(_mm_or_si128(_mm_slli_epi16(magnitude, 7), sign),
                                    _mm_and_si128(nan, _mm_set1_epi16(0x7e00)));
  return _mm256_mul_ps(_mm256_cvtph_ps(half), _mm256_set1_ps(256.0F));
}

// Eight whole elements from `first`.
template <int Element>
inline __m256 load8(const void* src, int first) {
  if constexpr (Element == kElementF32) {
    return _mm256_loadu_ps(static_cast<const float*>(src) + first);
  } else if constexpr (Element == kElementF8E4M3) {
    return f8e4m3_to_f32(_mm_loadl_epi64(
        reinterpret_cast<const __m128i*>(static_cast<const uint8_t*>(src) + first)));
  } else {
    const __m128i half = _mm_loadu_si128(
        reinterpret_cast<const __m128i*>(static_cast<const uint16_t*>(src) + first));
    if constexpr (Element == kElementF16) return _mm256_cvtph_ps(half);
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16));
  }
}

template <int Element>
inline Vec load_widened(const void* src, int first, int n) {
  if (n >= 8) return {load8<Element>(src, first)};
  alignas(32) float lanes[8] = {};
  for (int i = 0; i < n; ++i) lanes[i] = element_at(src, Element, first + i);
  return {_mm256_load_ps(lanes)};
}

template <int Element>
inline void convert_to_f32_from(float* dst, const void* src, int n) {
  int i = 0;
  for (; i + 8 <= n; i += 8) _mm256_storeu_ps(dst + i, load8<Element>(src, i));
  convert_to_f32_scalar(dst, src, Element, n, i);
}

inline void convert_to_f32(float* dst, const void* src, int element, int n) {
  switch (element) {
    case kElementF32: return convert_to_f32_from<kElementF32>(dst, src, n);
    case kElementF16: return convert_to_f32_from<kElementF16>(dst, src, n);
    case kElementBF16: return convert_to_f32_from<kElementBF16>(dst, src, n);
    default: return convert_to_f32_from<kElementF8E4M3>(dst, src, n);
  }
}

inline void store_row(void* dst, int element, const float* src, int n, float factor) {
  int i = 0;
  const __m256 f = _mm256_set1_ps(factor);
  if (element == kElementF32) {
    for (; i + 8 <= n; i += 8) {
      _mm256_storeu_ps(static_cast<float*>(dst) + i, _mm256_mul_ps(_mm256_loadu_ps(src + i), f));
    }
  } else if (element == kElementF16) {
    for (; i + 8 <= n; i += 8) {
      const __m256 x = _mm256_mul_ps(_mm256_loadu_ps(src + i), f);
      _mm_storeu_si128(reinterpret_cast<__m128i*>(static_cast<uint16_t*>(dst) + i),
                       _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
    }
  }
  store_row_scalar(dst, element, src, n, factor, i);
}

}  // namespace
}  // namespace pagoda::cpu

#include "backends/cpu/isa/f32_ops.hpp"

namespace pagoda::cpu {

const TileOps kTileOpsAvx2F32 = make_f32_ops();

}  // namespace pagoda::cpu

#endif
