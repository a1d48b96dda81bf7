// Ceiling of the bf16 dot product without tiles (vdpbf16ps).
#include "bench/ceilings/kernels.hpp"

namespace pagoda::bench {
namespace {

constexpr uint32_t kOne = 0x3f803f80U;  // two of bf16 1.0

}  // namespace

// In registers only; in assembly, because compilers keep an array of accumulators in memory once
// each step is pinned. Twelve chains cover two pipes of latency up to six.
int64_t bf16_rounds_avx512_bf16(int64_t rounds) {
  int64_t left = rounds;
  __asm__ volatile(
      "vzeroall\n"
      "vpbroadcastd (%1), %%zmm15\n"
      "1:\n"
      ".irp chain, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11\n"
      "vdpbf16ps %%zmm15, %%zmm15, %%zmm\\chain\n"
      ".endr\n"
      "dec %0\n"
      "jnz 1b\n"
      "vzeroupper\n"
      : "+r"(left)
      : "r"(&kOne)
      : "cc", "memory", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8",
        "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
  return rounds * 12 * 64;  // 16 lanes of two products, added
}

}  // namespace pagoda::bench
