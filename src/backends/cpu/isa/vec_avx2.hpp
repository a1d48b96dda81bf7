// Vec for AVX2 + FMA: eight floats. Included by avx2.cpp only.
#pragma once

#include <cstdint>
#include <immintrin.h>

namespace pagoda::cpu {
namespace {

struct Vec {
  static constexpr int kLanes = 8;
  __m256 v;

  static Vec zero() { return {_mm256_setzero_ps()}; }
  static Vec set(float x) { return {_mm256_set1_ps(x)}; }
  static Vec load(const float* p) { return {_mm256_loadu_ps(p)}; }
  void store(float* p) const { _mm256_storeu_ps(p, v); }
  static __m256i lanes() { return _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7); }
  static __m256i inside(int lo, int hi) {  // all ones in lanes [lo, hi)
    return _mm256_and_si256(_mm256_cmpgt_epi32(lanes(), _mm256_set1_epi32(lo - 1)),
                            _mm256_cmpgt_epi32(_mm256_set1_epi32(hi), lanes()));
  }
  static Vec load_first(const float* p, int n) { return {_mm256_maskload_ps(p, inside(0, n))}; }
  static Vec keep(Vec x, int lo, int hi) {
    return {_mm256_and_ps(x.v, _mm256_castsi256_ps(inside(lo, hi)))};
  }
  static Vec select(Vec x, int lo, int hi, float other) {
    return {_mm256_blendv_ps(_mm256_set1_ps(other), x.v, _mm256_castsi256_ps(inside(lo, hi)))};
  }
  static Vec keep_above(Vec x, Vec gate, float limit) {
    return {_mm256_and_ps(x.v, _mm256_cmp_ps(gate.v, _mm256_set1_ps(limit), _CMP_NLE_UQ))};
  }
  static Vec iota() { return {_mm256_cvtepi32_ps(lanes())}; }

  friend Vec operator+(Vec a, Vec b) { return {_mm256_add_ps(a.v, b.v)}; }
  friend Vec operator-(Vec a, Vec b) { return {_mm256_sub_ps(a.v, b.v)}; }
  friend Vec operator*(Vec a, Vec b) { return {_mm256_mul_ps(a.v, b.v)}; }
  friend Vec operator/(Vec a, Vec b) { return {_mm256_div_ps(a.v, b.v)}; }
  static Vec fma(Vec a, Vec b, Vec c) { return {_mm256_fmadd_ps(a.v, b.v, c.v)}; }
  static Vec max(Vec a, Vec b) { return {_mm256_max_ps(a.v, b.v)}; }
  static Vec min(Vec a, Vec b) { return {_mm256_min_ps(a.v, b.v)}; }
  static Vec scale_by_exponent(Vec x, Vec magic) {
    const __m256i n = _mm256_slli_epi32(_mm256_castps_si256(magic.v), 23);
    return {_mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(x.v), n))};
  }
  static Vec pick_above(Vec a, Vec b, Vec gate, float limit) {
    return {_mm256_blendv_ps(b.v, a.v, _mm256_cmp_ps(gate.v, _mm256_set1_ps(limit), _CMP_GT_OQ))};
  }
  static Vec copy_sign(Vec magnitude, Vec s) {
    const __m256 sign = _mm256_set1_ps(-0.0F);
    return {_mm256_or_ps(_mm256_andnot_ps(sign, magnitude.v), _mm256_and_ps(sign, s.v))};
  }
  // Lane i = the sum of x[i].
  static Vec sums(const Vec* x) {
    const auto quad = [](const Vec* y) {
      return _mm256_hadd_ps(_mm256_hadd_ps(y[0].v, y[1].v), _mm256_hadd_ps(y[2].v, y[3].v));
    };
    const __m256 a = quad(x);
    const __m256 b = quad(x + 4);
    return {_mm256_add_ps(_mm256_permute2f128_ps(a, b, 0x20), _mm256_permute2f128_ps(a, b, 0x31))};
  }
  static float sum(Vec x) {
    const __m128 half = _mm_add_ps(_mm256_castps256_ps128(x.v), _mm256_extractf128_ps(x.v, 1));
    const __m128 pair = _mm_add_ps(half, _mm_movehl_ps(half, half));
    return _mm_cvtss_f32(_mm_add_ss(pair, _mm_movehdup_ps(pair)));
  }
  static float maximum(Vec x) {
    const __m128 half = _mm_max_ps(_mm256_castps256_ps128(x.v), _mm256_extractf128_ps(x.v, 1));
    const __m128 pair = _mm_max_ps(half, _mm_movehl_ps(half, half));
    return _mm_cvtss_f32(_mm_max_ss(pair, _mm_movehdup_ps(pair)));
  }
};

}  // namespace
}  // namespace pagoda::cpu
