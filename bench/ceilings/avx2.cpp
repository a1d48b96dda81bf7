// Ceilings of AVX2 with FMA.
#include <immintrin.h>

#include "bench/ceilings/kernels.hpp"

namespace pagoda::bench {
namespace {

constexpr float kOne = 1.0F;

// 2^(x log2 e): n = round, the rest by its Taylor series to degree 5.
inline __m256 exponential(__m256 x) {
  const __m256 t = _mm256_mul_ps(x, _mm256_set1_ps(1.44269504F));
  const __m256 n = _mm256_round_ps(t, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  const __m256 f = _mm256_sub_ps(t, n);
  __m256 p = _mm256_set1_ps(1.33335581e-3F);
  p = _mm256_fmadd_ps(p, f, _mm256_set1_ps(9.61812911e-3F));
  p = _mm256_fmadd_ps(p, f, _mm256_set1_ps(5.55041087e-2F));
  p = _mm256_fmadd_ps(p, f, _mm256_set1_ps(0.240226507F));
  p = _mm256_fmadd_ps(p, f, _mm256_set1_ps(0.693147181F));
  p = _mm256_fmadd_ps(p, f, _mm256_set1_ps(1.0F));
  const __m256i exponent = _mm256_slli_epi32(_mm256_cvtps_epi32(n), 23);
  return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(p), exponent));
}

}  // namespace

// In registers only; in assembly, because compilers keep an array of accumulators in memory once
// each step is pinned. Twelve chains cover two pipes of latency up to six.
int64_t fp32_rounds_avx2(int64_t rounds) {
  int64_t left = rounds;
  __asm__ volatile(
      "vzeroall\n"
      "vbroadcastss (%1), %%ymm15\n"
      "1:\n"
      ".irp chain, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11\n"
      "vfmadd231ps %%ymm15, %%ymm15, %%ymm\\chain\n"
      ".endr\n"
      "dec %0\n"
      "jnz 1b\n"
      "vzeroupper\n"
      : "+r"(left)
      : "r"(&kOne)
      : "cc", "memory", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8",
        "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
  return rounds * 12 * 16;  // 8 lanes, multiply and add
}

int64_t exp_rounds_avx2(int64_t rounds) {
  constexpr int kVectors = 16;
  alignas(64) float scores[kVectors * 8];
  for (int i = 0; i < kVectors * 8; ++i) scores[i] = -0.05F * static_cast<float>(i);
  __m256 sum = _mm256_setzero_ps();
  for (int64_t r = 0; r < rounds; ++r) {
    for (int i = 0; i < kVectors; ++i) {
      sum = _mm256_add_ps(sum, exponential(_mm256_load_ps(scores + 8 * i)));
    }
    __asm__ volatile("" : "+m"(scores));  // every round loads and computes again
  }
  volatile float sink = _mm256_cvtss_f32(sum);
  static_cast<void>(sink);
  return rounds * kVectors * 8;
}

uint64_t read_avx2(const void* data, int64_t bytes) {
  const auto* words = static_cast<const __m256i*>(data);
  __m256i sum[4];
  for (auto& s : sum) s = _mm256_setzero_si256();
  for (int64_t i = 0; i < bytes / 32; i += 4) {
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      sum[j] = _mm256_xor_si256(sum[j], _mm256_loadu_si256(words + i + j));
    }
  }
  const __m256i all =
      _mm256_xor_si256(_mm256_xor_si256(sum[0], sum[1]), _mm256_xor_si256(sum[2], sum[3]));
  alignas(32) uint64_t lanes[4];
  _mm256_store_si256(reinterpret_cast<__m256i*>(lanes), all);
  return lanes[0] ^ lanes[1] ^ lanes[2] ^ lanes[3];
}

}  // namespace pagoda::bench
