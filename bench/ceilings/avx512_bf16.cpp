// Ceiling of the bf16 dot product without tiles (vdpbf16ps).
#include <immintrin.h>

#include "bench/ceilings/kernels.hpp"

namespace pagoda::bench {

int64_t bf16_rounds_avx512_bf16(int64_t rounds) {
  constexpr int kChains = 16;
  __m512 sum[kChains];
  for (auto& s : sum) s = _mm512_set1_ps(1.0F);
  const auto ones = reinterpret_cast<__m512bh>(_mm512_set1_epi16(0x3f80));  // bf16 1.0
  for (int64_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 16
    for (int i = 0; i < kChains; ++i) {
      sum[i] = _mm512_dpbf16_ps(sum[i], ones, ones);
      __asm__ volatile("" : "+v"(sum[i]));
    }
  }
  volatile float sink = 0;
  for (auto& s : sum) sink = sink + _mm512_cvtss_f32(s);
  return rounds * kChains * 64;
}

}  // namespace pagoda::bench
