// Ceilings of the baseline instruction set, and the clock.
#include "bench/ceilings/kernels.hpp"

namespace pagoda::bench {
namespace {

constexpr float kOnes[4] = {1, 1, 1, 1};
using Word2 = uint64_t __attribute__((vector_size(16)));

}  // namespace

// SSE2 has no fused multiply-add: six products and six sums a round, each chain on its own.
int64_t fp32_rounds_scalar(int64_t rounds) {
  int64_t left = rounds;
  __asm__ volatile(
      ".irp chain, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12\n"
      "movups (%1), %%xmm\\chain\n"
      ".endr\n"
      "1:\n"
      ".irp chain, 0, 1, 2, 3, 4, 5\n"
      "mulps %%xmm12, %%xmm\\chain\n"
      ".endr\n"
      ".irp chain, 6, 7, 8, 9, 10, 11\n"
      "addps %%xmm12, %%xmm\\chain\n"
      ".endr\n"
      "dec %0\n"
      "jnz 1b\n"
      : "+r"(left)
      : "r"(kOnes)
      : "cc", "memory", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8",
        "xmm9", "xmm10", "xmm11", "xmm12");
  return rounds * 12 * 4;
}

uint64_t read_scalar(const void* data, int64_t bytes) {
  const auto* words = static_cast<const Word2*>(data);
  Word2 sum[4] = {};
  for (int64_t i = 0; i < bytes / 16; i += 4) {
    sum[0] ^= words[i];
    sum[1] ^= words[i + 1];
    sum[2] ^= words[i + 2];
    sum[3] ^= words[i + 3];
  }
  const Word2 all = sum[0] ^ sum[1] ^ sum[2] ^ sum[3];
  return all[0] ^ all[1];
}

void count_cycles_scalar(int64_t rounds) {
  uint64_t value = 1;
  for (int64_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) {
      value += static_cast<uint64_t>(r);
      __asm__ volatile("" : "+r"(value));
    }
  }
  volatile uint64_t sink = value;
  static_cast<void>(sink);
}

}  // namespace pagoda::bench
