// Vec for AVX-512: sixteen floats. Included by the units of AVX-512 and above only.
#pragma once

#include <cstdint>
#include <immintrin.h>

namespace pagoda::cpu {
namespace {

struct Vec {
  static constexpr int kLanes = 16;
  __m512 v;

  static Vec zero() { return {_mm512_setzero_ps()}; }
  static Vec set(float x) { return {_mm512_set1_ps(x)}; }
  static Vec load(const float* p) { return {_mm512_loadu_ps(p)}; }
  void store(float* p) const { _mm512_storeu_ps(p, v); }
  static __mmask16 inside(int lo, int hi) {  // bits [lo, hi) of 16, for any lo and hi
    const int first = lo < 0 ? 0 : lo;
    const uint32_t below_hi = hi >= 16 ? 0xffffU : (hi <= 0 ? 0U : (1U << hi) - 1U);
    const uint32_t below_lo = first >= 16 ? 0xffffU : (1U << first) - 1U;
    return static_cast<__mmask16>(below_hi & ~below_lo);
  }
  static Vec load_first(const float* p, int n) { return {_mm512_maskz_loadu_ps(inside(0, n), p)}; }
  static Vec keep(Vec x, int lo, int hi) { return {_mm512_maskz_mov_ps(inside(lo, hi), x.v)}; }
  static Vec select(Vec x, int lo, int hi, float other) {
    return {_mm512_mask_mov_ps(_mm512_set1_ps(other), inside(lo, hi), x.v)};
  }
  static Vec keep_above(Vec x, Vec gate, float limit) {
    return {
        _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(gate.v, _mm512_set1_ps(limit), _CMP_NLE_UQ), x.v)};
  }
  static Vec iota() {
    return {_mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)};
  }

  friend Vec operator+(Vec a, Vec b) { return {_mm512_add_ps(a.v, b.v)}; }
  friend Vec operator-(Vec a, Vec b) { return {_mm512_sub_ps(a.v, b.v)}; }
  friend Vec operator*(Vec a, Vec b) { return {_mm512_mul_ps(a.v, b.v)}; }
  friend Vec operator/(Vec a, Vec b) { return {_mm512_div_ps(a.v, b.v)}; }
  static Vec fma(Vec a, Vec b, Vec c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
  static Vec max(Vec a, Vec b) { return {_mm512_max_ps(a.v, b.v)}; }
  static Vec min(Vec a, Vec b) { return {_mm512_min_ps(a.v, b.v)}; }
  static Vec scale_by_exponent(Vec x, Vec magic) {
    const __m512i n = _mm512_slli_epi32(_mm512_castps_si512(magic.v), 23);
    return {_mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(x.v), n))};
  }
  static Vec pick_above(Vec a, Vec b, Vec gate, float limit) {
    return {_mm512_mask_mov_ps(b.v, _mm512_cmp_ps_mask(gate.v, _mm512_set1_ps(limit), _CMP_GT_OQ),
                               a.v)};
  }
  static Vec copy_sign(Vec magnitude, Vec s) {
    const __m512 sign = _mm512_set1_ps(-0.0F);
    return {_mm512_or_ps(_mm512_andnot_ps(sign, magnitude.v), _mm512_and_ps(sign, s.v))};
  }
  // Lane i = the sum of x[i].
  static Vec sums(const Vec* x) {
    __m512 quad[4];  // lane 4l + j = the sum of x[4i + j] over the 128-bit lane l
    for (int i = 0; i < 4; ++i) {
      const Vec* y = x + 4 * i;
      const __m512 ab =
          _mm512_add_ps(_mm512_unpacklo_ps(y[0].v, y[1].v), _mm512_unpackhi_ps(y[0].v, y[1].v));
      const __m512 cd =
          _mm512_add_ps(_mm512_unpacklo_ps(y[2].v, y[3].v), _mm512_unpackhi_ps(y[2].v, y[3].v));
      quad[i] = _mm512_add_ps(_mm512_shuffle_ps(ab, cd, 0x44), _mm512_shuffle_ps(ab, cd, 0xee));
    }
    const auto halves = [](__m512 a, __m512 b) {
      return _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xdd));
    };
    return {halves(halves(quad[0], quad[1]), halves(quad[2], quad[3]))};
  }
  static float sum(Vec x) { return _mm512_reduce_add_ps(x.v); }
  static float maximum(Vec x) { return _mm512_reduce_max_ps(x.v); }
};

}  // namespace
}  // namespace pagoda::cpu
