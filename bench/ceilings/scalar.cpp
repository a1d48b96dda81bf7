// Ceilings of the baseline instruction set, and the clock.
#include "bench/ceilings/kernels.hpp"

namespace pagoda::bench {
namespace {

// The widest vector of the baseline (SSE2 on x86-64); GCC and Clang lower it on any machine.
using Float4 = float __attribute__((vector_size(16)));
using Word2 = uint64_t __attribute__((vector_size(16)));
constexpr int kChains = 12;

}  // namespace

int64_t fp32_rounds_scalar(int64_t rounds) {
  Float4 sum[kChains];
  for (auto& s : sum) s = Float4{1, 1, 1, 1};
  Float4 factor = {0.999F, 0.999F, 0.999F, 0.999F};
  for (int64_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 12
    for (int i = 0; i < kChains; ++i) {
      sum[i] = sum[i] * factor + factor;
#if defined(__x86_64__)
      __asm__ volatile("" : "+x"(sum[i]));  // keeps every step
#endif
    }
  }
  volatile float sink = 0;
  for (auto& s : sum) sink = sink + s[0];
  return rounds * kChains * 8;
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
#if defined(__x86_64__)
      __asm__ volatile("" : "+r"(value));
#endif
    }
  }
  volatile uint64_t sink = value;
  static_cast<void>(sink);
}

}  // namespace pagoda::bench
