// TiledTensorCore: the products S = Q K' and O = P V of warps, with fragments from KVBufferImpl,
// against plain loops in double precision; accumulators as the A of the next product.
#include "operand/tiled_tensor_core.hpp"

#include <cmath>
#include <gtest/gtest.h>
#include <vector>

#include "arch/named_barrier.hpp"
#include "arch/thread.hpp"
#include "emulator/machine/launch.hpp"
#include "operand/mma_sync.hpp"
#include "testing/material/kv_products.hpp"

namespace pagoda::operand {
namespace {

using namespace material;
using arch::BFloat16;
using arch::Half;
using emulator::all_reports;

using Instruction = MmaInstruction<BFloat16, MmaShape{16, 8, 16}>;

// --- products ----------------------------------------------------------------------------------

TEST(Product, q_k_equals_a_plain_product) {
  for (const int rows : {64, 63, 20}) {
    EXPECT_EQ((product_difference<PrefillK<BFloat16>, 4>({}, rows)), "");
    EXPECT_EQ((product_difference<PrefillK<BFloat16, 2, 1, 1>, 4>({}, rows)), "");
    EXPECT_EQ((product_difference<TokenK<BFloat16>, 4>({}, rows)), "");
    EXPECT_EQ((product_difference<TokenK<BFloat16, 2, 1, 1>, 4>({}, rows)), "");
  }
  EXPECT_EQ((product_difference<PrefillK<Half>, 4>({.dtype = DType::kF16}, 64)), "");
}

TEST(Product, p_v_equals_a_plain_product) {
  for (const int rows : {64, 63, 20}) {
    EXPECT_EQ((product_difference<PrefillV<BFloat16>, 2>({}, rows)), "");
    EXPECT_EQ((product_difference<PrefillV<BFloat16, 2, 1, 1>, 2>({}, rows)), "");
    EXPECT_EQ((product_difference<TokenV<BFloat16, 128>, 2>({}, rows)), "");
    EXPECT_EQ((product_difference<TokenV<BFloat16, 128, 32, 2, 1, 1>, 2>({}, rows)), "");
  }
  EXPECT_EQ((product_difference<TokenV<Half, 64>, 2>({.dtype = DType::kF16, .dim = 64}, 64)), "");
  EXPECT_EQ((product_difference<TokenV<BFloat16, 256>, 2>({.dim = 256}, 64)), "");
  EXPECT_EQ((product_difference<TokenV<BFloat16, 512, 16, 1, 1, 1>, 4>({.dim = 512}, 64)), "");
}

TEST(Product, a_cache_of_e4m3_in_pages_at_any_address_is_multiplied) {
  const CacheFormat format{.kind = KeyRowsKind::kPaged,
                           .page_size = 3,
                           .dtype = DType::kF8E4M3,
                           .dim = 125,
                           .row_gap = 2,
                           .first = 3};
  EXPECT_EQ((product_difference<PrefillK<Half>, 4>(format, 61)), "");
  EXPECT_EQ((product_difference<TokenV<BFloat16, 128>, 2>(format, 61)), "");
}

TEST(Product, the_comparison_finds_every_fault) {
  for (const Fault fault : {Fault::kDroppedRow, Fault::kWrongStage, Fault::kTwoPercent}) {
    EXPECT_NE((product_difference<PrefillK<BFloat16, 2>, 4>({}, 64, fault)), "");
    EXPECT_NE((product_difference<TokenK<BFloat16, 2>, 4>({}, 64, fault)), "");
    EXPECT_NE((product_difference<PrefillV<BFloat16, 2>, 2>({}, 64, fault)), "");
    EXPECT_NE((product_difference<TokenV<BFloat16, 128, 32, 2>, 2>({}, 64, fault)), "");
  }
}

TEST(Product, the_comparison_finds_a_wrong_sum) {
  const std::vector<Sum> sums{{1, 2}, {-8, 100}};
  EXPECT_EQ(difference({1, -8}, sums), "");
  EXPECT_NE(difference({1, -8.16F}, sums), "");
  EXPECT_NE(difference({-8, 1}, sums), "");
  EXPECT_NE(difference({1, 0}, sums), "");
  EXPECT_NE(difference({1, NAN}, sums), "");
  EXPECT_NE(difference({1}, sums), "");
}

// --- to_a --------------------------------------------------------------------------------------

TEST(ToA, accumulators_are_the_a_fragment_of_the_instruction) {
  // Element (m, n) of S [16, 64] is 64 m + n; a register holds two.
  for (int lane = 0; lane < 32; ++lane) {
    float d[8][4];
    for (int n = 0; n < 8; ++n) {
      for (int i = 0; i < 4; ++i) {
        const int row = Instruction::row(lane, i / 2), column = Instruction::column(lane, i % 2);
        d[n][i] = static_cast<float>(64 * row + 8 * n + column);
      }
    }
    for (int k = 0; k < 4; ++k) {
      uint32_t a[4];
      Instruction::to_a(a, d, k, [](float low, float high) {
        return static_cast<uint32_t>(low) | static_cast<uint32_t>(high) << 16;
      });
      // "Matrix fragment A for mma.m16n8k16": registers 1 and 3 are 8 rows below, 2 and 3 have the
      // upper half of k.
      for (int i = 0; i < 4; ++i) {
        const int row = lane / 4 + (i % 2 == 1 ? 8 : 0);
        const int column = 16 * k + lane % 4 * 2 + (i >= 2 ? 8 : 0);
        const auto low = static_cast<uint32_t>(64 * row + column);
        EXPECT_EQ(a[i], low | (low + 1) << 16) << lane << ", " << k << ", " << i;
      }
    }
  }
}

// S = Q K' of four warps with 16 rows each, and O = S V with the accumulators of S as A.
struct ChainKernel {
  using T = BFloat16;
  using K = PrefillK<T>;
  using V = PrefillV<T>;
  struct Params {
    arch::GlobalPtr<const T> q;  // [64, 128]
    KVSource k, v;
    KeyRows k_keys, v_keys;
    arch::GlobalPtr<float> s;  // [64, 64]
    arch::GlobalPtr<float> o;  // [64, 128]
  };
  struct Storage {
    arch::SharedArray<T, 64 * 32, 128> k;
    arch::SharedArray<T, 32 * 128, 128> v;
  };
  static constexpr int kThreads = 128;

  static PAGODA_DEVICE void run(const Params& params) {
    auto& storage = arch::shared_storage<Storage>();
    const int lane = arch::lane_idx(), first_row = arch::thread_idx() / 32 * 16;
    K k(storage.k.data(), 0);
    V v(storage.v.data(), 0);
    k.begin({params.k, params.k_keys, KVCacheCase::kSequence, 0}, 64);
    v.begin({params.v, params.v_keys, KVCacheCase::kSequence, 0}, 64);
    float s[8][4] = {}, o[16][4] = {};
    for (int step = 0; step < 4; ++step) {
      arch::syncthreads();
      k.load_from_dram();
      k.copy_to_shared();
      arch::syncthreads();
      k.load_from_shared<0>();
      for (int g = 0; g < 2; ++g) {
        uint32_t a[4];  // by the figure, from global memory
        for (int i = 0; i < 4; ++i) {
          const int row = first_row + lane / 4 + i % 2 * 8;
          const int column = step * 32 + g * 16 + lane % 4 * 2 + i / 2 * 8;
          a[i] = arch::load((params.q + (row * 128 + column)).as<const uint32_t>());
        }
        for (int n = 0; n < 8; ++n) K::TensorCore::multiply(s[n], a, k.get_mma_tile()[n], g);
      }
    }
    for (int step = 0; step < 2; ++step) {
      arch::syncthreads();
      v.load_from_dram();
      v.copy_to_shared();
      arch::syncthreads();
      v.load_from_shared<0>();
      for (int g = 0; g < 2; ++g) {
        uint32_t a[4];
        Instruction::to_a(a, s, 2 * step + g, [](float low, float high) {
          return bits_of<T>(low) | static_cast<uint32_t>(bits_of<T>(high)) << 16;
        });
        for (int n = 0; n < 16; ++n) V::TensorCore::multiply(o[n], a, v.get_mma_tile()[n], g);
      }
    }
    for (int i = 0; i < 4; ++i) {
      const int row = first_row + lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
      for (int n = 0; n < 8; ++n) arch::store(params.s + (row * 64 + n * 8 + column), s[n][i]);
      for (int n = 0; n < 16; ++n) arch::store(params.o + (row * 128 + n * 8 + column), o[n][i]);
    }
  }
};

TEST(ToA, scores_are_multiplied_by_v_without_a_shuffle) {
  const KVCacheCase k({}, 64, 5), v({}, 64, 6);
  const std::vector<BFloat16> q = random_elements<BFloat16>(64 * 128, 7);
  std::vector<float> s(64 * 64), o(64 * 128);
  const emulator::Result result = emulator::launch<ChainKernel>(
      emulator::shape_of<ChainKernel>("chain", {1}),
      {q.data(), k.source(), v.source(), k.keys(), v.keys(), s.data(), o.data()},
      k.buffers(v.buffers({emulator::input("q", q.data(), q.size()),
                           emulator::output("s", s.data(), s.size()),
                           emulator::output("o", o.data(), o.size())})));
  ASSERT_EQ(all_reports(result), "");
  EXPECT_EQ(difference(s, exact_product(q, 64, 128, 64,
                                        [&](int i, int n) -> double { return k.at(n, i); })),
            "");
  // P is the scores, rounded.
  std::vector<BFloat16> p;
  p.reserve(s.size());
  for (const float score : s) p.push_back({bits_of<BFloat16>(score)});
  const auto expected =
      exact_product(p, 64, 64, 128, [&](int i, int n) -> double { return v.at(i, n); });
  EXPECT_EQ(difference(o, expected), "");
  EXPECT_NE(difference(o, exact_product(p, 64, 63, 128,
                                        [&](int i, int n) -> double { return v.at(i, n); })),
            "");
}

}  // namespace
}  // namespace pagoda::operand
