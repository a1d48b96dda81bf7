// Ceilings of AVX2 with FMA.
#include <immintrin.h>

#include "bench/ceilings/kernels.hpp"

namespace pagoda::bench {
namespace {

constexpr float kOne = 1.0F;

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
