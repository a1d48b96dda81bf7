// mma.sync: every shape and type, on small integers, whose sums are exact in fp32.
#pragma once

#include "arch/memory.hpp"
#include "arch/mma.hpp"
#include "arch/thread.hpp"
#include "elements.hpp"
#include "target.hpp"

namespace pagoda::primitives {

using namespace arch;

// D[16][8] += A[16][kK] B[kK][8]; A and B^T are row-major, and the fragments follow the tables of
// the PTX ISA ("Matrix fragments for mma.m16n8k...").
template <class T, int kK>
struct WarpMma {
  struct Params {
    arch::GlobalPtr<const uint8_t> in;  // A[16][kK], B^T[8][kK], C[16][8] in float
    arch::GlobalPtr<float> out;         // D[16][8]
  };
  static constexpr int kThreads = 32, kClusterSize = 1, kMinArch = sizeof(T) == 1 ? 90 : 80;
  struct Storage {};
  PAGODA_DEVICE static void run(const Params& p) {
    constexpr int kRowBytes = kK * static_cast<int>(sizeof(T));
    constexpr int kWords = kRowBytes / 16;  // 16 bytes of K are one column of words of a quad
    const int group = lane_idx() / 4, quad = lane_idx() % 4;
    const arch::GlobalPtr<const uint8_t> b_rows = p.in + 16 * kRowBytes;
    const auto c = (b_rows + 8 * kRowBytes).template as<const float>();
    const auto word = [&](arch::GlobalPtr<const uint8_t> rows, int row, int column) {
      return load((rows + row * kRowBytes + column * 16 + quad * 4).template as<const uint32_t>());
    };
    uint32_t a[2 * kWords], b[kWords];
    PAGODA_UNROLL
    for (int i = 0; i < kWords; ++i) {
      a[2 * i] = word(p.in, group, i);
      a[2 * i + 1] = word(p.in, group + 8, i);
      b[i] = word(b_rows, group, i);
    }
    float d[4];
    PAGODA_UNROLL
    for (int i = 0; i < 4; ++i) d[i] = load(c + (group + i / 2 * 8) * 8 + quad * 2 + i % 2);
    if constexpr (sizeof(T) == 1) {
      mma_m16n8k32<T>(d, a, b);
    } else if constexpr (kK == 16) {
      mma_m16n8k16<T>(d, a, b);
    } else {
      mma_m16n8k8<T>(d, a, b);
    }
    PAGODA_UNROLL
    for (int i = 0; i < 4; ++i) {
      store(p.out + (group + i / 2 * 8) * 8 + quad * 2 + i % 2, d[i]);
    }
  }
};

template <class T, int kK>
void add_mma_case(Cases& cases, const std::string& name) {
  const auto a = random_integers(16 * kK, 8, 61), b = random_integers(8 * kK, 8, 62),
             c = random_integers(16 * 8, 1000, 63);
  std::vector<float> start(c.begin(), c.end()), expected(16 * 8);
  for (size_t row = 0; row < 16; ++row) {
    for (size_t column = 0; column < 8; ++column) {
      int32_t sum = c[row * 8 + column];
      for (size_t k = 0; k < kK; ++k) sum += a[row * kK + k] * b[column * kK + k];
      expected[row * 8 + column] = static_cast<float>(sum);
    }
  }
  Bytes input = encode_elements<T>(a);
  const Bytes b_bytes = encode_elements<T>(b), c_bytes = to_bytes(start);
  input.insert(input.end(), b_bytes.begin(), b_bytes.end());
  input.insert(input.end(), c_bytes.begin(), c_bytes.end());
  using Kernel = WarpMma<T, kK>;
  cases.push_back(make_case<Kernel>("mma/" + name, {}, input, poison(expected.size() * 4),
                                    to_bytes(expected), in_and_out<Kernel>()));
}

inline void add_mma_cases(Cases& cases) {
  add_mma_case<BFloat16, 16>(cases, "m16n8k16 bf16");
  add_mma_case<Half, 16>(cases, "m16n8k16 f16");
  add_mma_case<BFloat16, 8>(cases, "m16n8k8 bf16");
  add_mma_case<Half, 8>(cases, "m16n8k8 f16");
  add_mma_case<Float8E4M3, 32>(cases, "m16n8k32 e4m3");
}

}  // namespace pagoda::primitives
