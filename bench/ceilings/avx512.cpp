// Ceilings of AVX-512.
#include <immintrin.h>

#include "bench/ceilings/kernels.hpp"

namespace pagoda::bench {
namespace {

constexpr float kOne = 1.0F;

// 2^(x log2 e): n = round, the rest by its Taylor series to degree 5.
inline __m512 exponential(__m512 x) {
  const __m512 t = _mm512_mul_ps(x, _mm512_set1_ps(1.44269504F));
  const __m512 n = _mm512_roundscale_ps(t, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  const __m512 f = _mm512_sub_ps(t, n);
  __m512 p = _mm512_set1_ps(1.33335581e-3F);
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(9.61812911e-3F));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(5.55041087e-2F));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(0.240226507F));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(0.693147181F));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(1.0F));
  return _mm512_scalef_ps(p, n);
}

}  // namespace

// In registers only; in assembly, because compilers keep an array of accumulators in memory once
// each step is pinned. Twelve chains cover two pipes of latency up to six.
int64_t fp32_rounds_avx512(int64_t rounds) {
  int64_t left = rounds;
  __asm__ volatile(
      "vzeroall\n"
      "vbroadcastss (%1), %%zmm15\n"
      "1:\n"
      ".irp chain, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11\n"
      "vfmadd231ps %%zmm15, %%zmm15, %%zmm\\chain\n"
      ".endr\n"
      "dec %0\n"
      "jnz 1b\n"
      "vzeroupper\n"
      : "+r"(left)
      : "r"(&kOne)
      : "cc", "memory", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8",
        "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
  return rounds * 12 * 32;  // 16 lanes, multiply and add
}

int64_t exp_rounds_avx512(int64_t rounds) {
  constexpr int kVectors = 16;
  alignas(64) float scores[kVectors * 16];
  for (int i = 0; i < kVectors * 16; ++i) scores[i] = -0.05F * static_cast<float>(i);
  __m512 sum = _mm512_setzero_ps();
  for (int64_t r = 0; r < rounds; ++r) {
    for (int i = 0; i < kVectors; ++i) {
      sum = _mm512_add_ps(sum, exponential(_mm512_load_ps(scores + 16 * i)));
    }
    __asm__ volatile("" : "+m"(scores));  // every round loads and computes again
  }
  volatile float sink = _mm512_cvtss_f32(sum);
  static_cast<void>(sink);
  return rounds * kVectors * 16;
}

uint64_t read_avx512(const void* data, int64_t bytes) {
  const auto* words = static_cast<const char*>(data);
  __m512i sum[8];
  for (auto& s : sum) s = _mm512_setzero_si512();
  for (int64_t i = 0; i < bytes; i += 512) {
#pragma GCC unroll 8
    for (int j = 0; j < 8; ++j) {
      sum[j] = _mm512_xor_si512(sum[j], _mm512_loadu_si512(words + i + 64 * j));
    }
  }
  for (int j = 1; j < 8; ++j) sum[0] = _mm512_xor_si512(sum[0], sum[j]);
  alignas(64) uint64_t lanes[8];
  _mm512_store_si512(lanes, sum[0]);
  uint64_t all = 0;
  for (const uint64_t lane : lanes) all ^= lane;
  return all;
}

}  // namespace pagoda::bench
