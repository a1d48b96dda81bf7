// Ceilings of AVX-512.
#include <immintrin.h>

#include "bench/ceilings/kernels.hpp"

namespace pagoda::bench {

int64_t fp32_rounds_avx512(int64_t rounds) {
  constexpr int kChains = 16;
  __m512 sum[kChains];
  for (auto& s : sum) s = _mm512_set1_ps(1.0F);
  const __m512 factor = _mm512_set1_ps(0.999F);
  for (int64_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 16
    for (int i = 0; i < kChains; ++i) {
      sum[i] = _mm512_fmadd_ps(sum[i], factor, factor);
      __asm__ volatile("" : "+v"(sum[i]));
    }
  }
  volatile float sink = 0;
  for (auto& s : sum) sink = sink + _mm512_cvtss_f32(s);
  return rounds * kChains * 32;
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
