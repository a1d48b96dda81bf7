// Ceilings of AVX2 with FMA.
#include <immintrin.h>

#include "bench/ceilings/kernels.hpp"

namespace pagoda::bench {

int64_t fp32_rounds_avx2(int64_t rounds) {
  constexpr int kChains = 12;  // two pipes of latency 4 or 5 need 10; 16 registers
  __m256 sum[kChains];
  for (auto& s : sum) s = _mm256_set1_ps(1.0F);
  const __m256 factor = _mm256_set1_ps(0.999F);
  for (int64_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 12
    for (int i = 0; i < kChains; ++i) {
      sum[i] = _mm256_fmadd_ps(sum[i], factor, factor);
      __asm__ volatile("" : "+x"(sum[i]));
    }
  }
  volatile float sink = 0;
  for (auto& s : sum) sink = sink + _mm256_cvtss_f32(s);
  return rounds * kChains * 16;
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
