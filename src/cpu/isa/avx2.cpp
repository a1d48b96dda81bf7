// The fp32 tile operations for AVX2, FMA and F16C.
#if defined(__x86_64__)

#include "cpu/isa/scalar_convert.hpp"
#include "cpu/isa/vec_avx2.hpp"

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

inline void convert_to_f32(float* dst, const void* src, int element, int n) {
  int i = 0;
  if (element == kElementF32) {
    for (; i + 8 <= n; i += 8) {
      _mm256_storeu_ps(dst + i, _mm256_loadu_ps(static_cast<const float*>(src) + i));
    }
  } else if (element != kElementF8E4M3) {
    const auto* bits = static_cast<const uint16_t*>(src);
    for (; i + 8 <= n; i += 8) {
      const __m128i half = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bits + i));
      const __m256 wide =
          element == kElementF16
              ? _mm256_cvtph_ps(half)
              : _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16));
      _mm256_storeu_ps(dst + i, wide);
    }
  }
  convert_to_f32_scalar(dst, src, element, n, i);
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

#include "cpu/isa/f32_ops.hpp"

namespace pagoda::cpu {

const TileOps kTileOpsAvx2F32 = make_f32_ops();

}  // namespace pagoda::cpu

#endif
