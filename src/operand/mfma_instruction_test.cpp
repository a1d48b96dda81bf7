// MmaInstruction of MFMA: the fragments that a lane loads by AMD's register maps, the products
// S = Q K' and O = P V of waves against plain loops in double precision, scores as the operand of
// P V.
#include <cmath>
#include <cstdint>
#include <gtest/gtest.h>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "arch/named_barrier.hpp"
#include "arch/thread.hpp"
#include "emulator/machine/launch.hpp"
#include "operand/mfma.hpp"
#include "testing/material/kv_fragments.hpp"
#include "testing/material/kv_products.hpp"
#include "testing/material/mfma_buffers.hpp"

namespace pagoda::operand {
namespace {

using namespace material;
using arch::BFloat16;
using arch::Half;
using emulator::all_reports;

template <int size>
using Instruction = MmaInstruction<BFloat16, MmaShape{size, size, 256 / size}>;

// --- a lane's part of the accumulator ----------------------------------------------------------

template <int size>
void expect_rows_and_columns() {
  using I = Instruction<size>;
  EXPECT_EQ(I::kLanes, 64);
  EXPECT_EQ(I::kRows * I::kColumns, size * size / 64);
  std::set<std::pair<int, int>> seen;
  for (int lane = 0; lane < 64; ++lane) {
    for (int i = 0; i < I::kColumns; ++i) {
      // D of K Q' is [key, query]: register i has key 8 (i / 4) + 4 (lane / 32) + i % 4 of
      // 32x32x8, and 4 (lane / 16) + i of 16x16x16.
      const int key = size == 32 ? 8 * (i / 4) + 4 * (lane / 32) + i % 4 : 4 * (lane / 16) + i;
      EXPECT_EQ(I::row(lane, 0), lane % size);
      EXPECT_EQ(I::column(lane, i), key) << lane << ", " << i;
      seen.insert({I::row(lane, 0), I::column(lane, i)});
    }
  }
  EXPECT_EQ(seen.size(), static_cast<size_t>(size * size));
}

TEST(MfmaInstruction, a_lane_has_scores_of_one_query) {
  expect_rows_and_columns<32>();
  expect_rows_and_columns<16>();
}

TEST(MfmaInstruction, the_lanes_that_share_a_row_are_row_stride_apart) {
  for (int lane = 0; lane < 64; ++lane) {
    for (int i = 0; i < Instruction<32>::kRowLanes; ++i) {
      const int other = (lane + i * Instruction<32>::kRowStride) % 64;
      EXPECT_EQ(Instruction<32>::row(lane, 0), Instruction<32>::row(other, 0));
    }
    for (int i = 0; i < Instruction<16>::kRowLanes; ++i) {
      const int other = (lane + i * Instruction<16>::kRowStride) % 64;
      EXPECT_EQ(Instruction<16>::row(lane, 0), Instruction<16>::row(other, 0));
    }
  }
  EXPECT_EQ(Instruction<32>::kRowLanes * 32, 64);
  EXPECT_EQ(Instruction<16>::kRowLanes * 16, 64);
}

// --- load_a ------------------------------------------------------------------------------------

// A tile [64, 64] whose element (row, k) is 64 row + k, and every A fragment of it: k-groups of
// `group` steps, for the tiles of `size` rows.
template <int size, int group, VectorLayout layout>
struct LoadAKernel {
  using I = Instruction<size>;
  static constexpr int k_groups = 64 / (256 / size * group), row_tiles = 64 / size;
  struct Params {
    arch::GlobalPtr<uint32_t> out;  // [row_tiles, k_groups, 64 lanes, group, 2]
  };
  struct Storage {
    arch::SharedArray<BFloat16, 64 * 64, 128> tile;
  };
  static constexpr int kThreads = 64, kWarpSize = 64;

  static PAGODA_DEVICE void run(const Params& params) {
    auto& storage = arch::shared_storage<Storage>();
    for (int i = arch::thread_idx(); i < 64 * 64; i += 64) {
      const int at = layout.index(i / 64, i % 64 / 8) * 8 + i % 8;
      arch::store(storage.tile.at(at).template as<uint16_t>(), static_cast<uint16_t>(i));
    }
    arch::syncthreads();
    [&]<int... k>(std::integer_sequence<int, k...>) { (load<k>(params, storage), ...); }
    (std::make_integer_sequence<int, k_groups>());
  }

 private:
  template <int k>
  static void load(const Params& params, Storage& storage) {
    for (int tile = 0; tile < row_tiles; ++tile) {
      uint32_t a[group][2];
      I::template load_a<layout, k*(64 / k_groups) / 8>(a, storage.tile.data(), tile * size);
      for (int i = 0; i < 2 * group; ++i) {
        const int at = ((tile * k_groups + k) * 64 + arch::lane_idx()) * 2 * group + i;
        arch::store(params.out + at, a[i / 2][i % 2]);
      }
    }
  }
};

// Lane l has row l % size and 4 * group consecutive k, a step of the group four of them.
template <int size, int group, VectorLayout layout>
void expect_a_fragments() {
  using Kernel = LoadAKernel<size, group, layout>;
  std::vector<uint32_t> out(static_cast<size_t>(Kernel::row_tiles * Kernel::k_groups * 64) * 2 *
                            group);
  const emulator::Result result =
      emulator::launch<Kernel>(emulator::shape_of<Kernel>("load_a", {1}), {out.data()},
                               {emulator::output("out", out.data(), out.size())});
  ASSERT_EQ(all_reports(result), "");
  size_t at = 0;
  for (int tile = 0; tile < Kernel::row_tiles; ++tile) {
    for (int k_group = 0; k_group < Kernel::k_groups; ++k_group) {
      for (int lane = 0; lane < 64; ++lane) {
        for (int word = 0; word < 2 * group; ++word, ++at) {
          const int row = tile * size + lane % size;
          const int k = k_group * (64 / Kernel::k_groups) + lane / size * 4 * group + 2 * word;
          const auto low = static_cast<uint32_t>(64 * row + k);
          ASSERT_EQ(out[at], low | (low + 1) << 16)
              << size << ", group " << group << ", row " << row << ", k " << k << ", lane " << lane;
        }
      }
    }
  }
}

constexpr VectorLayout kPanels = panel_layout(64, 8);
constexpr VectorLayout kRowMajor = {
    .rows = 64, .chunks = 8, .is_blocked = false, .swizzle = row_major_swizzle(8)};

TEST(LoadA, a_lane_has_consecutive_k_of_its_row) {
  expect_a_fragments<32, 2, kPanels>();
  expect_a_fragments<32, 1, kPanels>();
  expect_a_fragments<16, 2, kPanels>();
  expect_a_fragments<16, 1, kPanels>();
  expect_a_fragments<32, 2, kRowMajor>();
  expect_a_fragments<16, 1, kRowMajor>();
}

// --- load_b ------------------------------------------------------------------------------------

template <int size, int group>
void expect_k_fragments() {  // transpose_b, blocked and row-major with a swizzle
  constexpr int mmas = 64 / size;
  EXPECT_EQ((wrong_fragments_by_parts<MfmaK<BFloat16, size, group, false, 64>, 128, mmas>()), "");
  EXPECT_EQ((wrong_fragments_by_parts<MfmaK<BFloat16, size, group, true, 64>, 128, mmas>()), "");
}

TEST(LoadB, k_fragments_are_those_of_the_instruction) {
  expect_k_fragments<32, 2>();
  expect_k_fragments<32, 1>();
  expect_k_fragments<16, 2>();
  expect_k_fragments<16, 1>();
  EXPECT_EQ((wrong_fragments_by_parts<MfmaPrefillK<Half>, 128, 2>()), "");
}

TEST(LoadB, v_fragments_are_those_of_the_instruction) {  // element by element
  EXPECT_EQ((wrong_fragments_by_parts<MfmaV<BFloat16, 16, 2, true, 64, 128>, 128, 8>()), "");
  EXPECT_EQ((wrong_fragments_by_parts<MfmaV<BFloat16, 16, 1, true, 64, 128>, 128, 8>()), "");
  EXPECT_EQ((wrong_fragments_by_parts<MfmaV<Half, 16, 2, false, 64, 128>, 128, 8>()), "");
  EXPECT_EQ((wrong_fragments_by_parts<MfmaV<BFloat16, 32, 2, false, 64, 128>, 128, 4>()), "");
}

TEST(LoadB, every_wave_has_its_own_warp_tile) {  // warp_n 0 .. 3
  EXPECT_EQ((wrong_fragments_by_parts<MfmaTokenK<BFloat16>, 128, 1>()), "");
  EXPECT_EQ((wrong_fragments_by_parts<MfmaK<BFloat16, 32, 2, true, 32>, 128, 1>()), "");
  EXPECT_EQ((wrong_fragments_by_parts<MfmaTokenV<BFloat16, 64>, 64, 1>()), "");
  EXPECT_EQ((wrong_fragments_by_parts<MfmaTokenV<BFloat16, 128>, 128, 2>()), "");
  EXPECT_EQ((wrong_fragments_by_parts<MfmaTokenV<BFloat16, 256>, 256, 4>()), "");
  EXPECT_EQ((wrong_fragments_by_parts<MfmaTokenV<BFloat16, 512, 16>, 512, 8>()), "");
}

TEST(LoadB, parts_are_parts_of_the_whole) {
  EXPECT_EQ((wrong_fragments_by_parts<MfmaPrefillK<BFloat16>, 128, 1>()), "");
  EXPECT_EQ((wrong_fragments_by_parts<MfmaK<BFloat16, 16, 1, false, 64>, 128, 1, 2, 3>()), "");
  EXPECT_EQ((wrong_fragments_by_parts<MfmaTokenV<BFloat16, 256>, 256, 1, 2, 3>()), "");
  const KVCacheCase cache({}, 64);  // 1 + 2 + 1
  using Buffer = MfmaK<BFloat16, 16, 2, false, 64>;
  EXPECT_EQ((wrong_fragments<FragmentKernel<Buffer, 4, 2, 1>>(cache)), "");
}

TEST(LoadB, rows_that_do_not_exist_are_zeros) {
  EXPECT_EQ((wrong_fragments_by_parts<MfmaPrefillK<BFloat16, 2, 2>, 128, 2>(37)), "");
  EXPECT_EQ((wrong_fragments_by_parts<MfmaTokenV<BFloat16, 128, 32, 2, 2>, 128, 2>(37)), "");
}

TEST(LoadB, the_oracle_finds_a_wrong_element) {
  using Kernel = FragmentKernel<MfmaPrefillK<BFloat16>, 4>;
  KVCacheCase cache({}, 64);
  std::string reports;
  const std::vector<uint32_t> words = fragments<Kernel>(cache, 0, 64, {}, reports);
  EXPECT_EQ(words, expected_fragments<Kernel>(cache, 0, 64));
  EXPECT_NE(words, expected_fragments<Kernel>(cache, 0, 63));  // a row less
  cache.set(63, 127, cache.at(63, 127) * 1.02F);
  EXPECT_NE(words, expected_fragments<Kernel>(cache, 0, 64));
}

// --- products ----------------------------------------------------------------------------------

TEST(MfmaProduct, q_k_equals_a_plain_product) {
  for (const int rows : {64, 63, 20}) {
    EXPECT_EQ((product_difference<MfmaPrefillK<BFloat16>, 4>({}, rows)), "");
    EXPECT_EQ((product_difference<MfmaTokenK<BFloat16>, 4>({}, rows)), "");
  }
  EXPECT_EQ((product_difference<MfmaPrefillK<BFloat16, 2, 2>, 4>({}, 64)), "");
  EXPECT_EQ((product_difference<MfmaK<BFloat16, 32, 1, false, 64>, 4>({}, 64)), "");
  EXPECT_EQ((product_difference<MfmaK<BFloat16, 16, 1, true, 16>, 4>({}, 64)), "");
  EXPECT_EQ((product_difference<MfmaPrefillK<Half>, 4>({.dtype = DType::kF16}, 64)), "");
  EXPECT_EQ((product_difference<MfmaTokenK<Half, 2, 2>, 4>({.dtype = DType::kF16}, 64)), "");
}

TEST(MfmaProduct, p_v_equals_a_plain_product) {
  for (const int rows : {64, 63, 20}) {
    EXPECT_EQ((product_difference<MfmaPrefillV<BFloat16>, 2>({}, rows)), "");
    EXPECT_EQ((product_difference<MfmaTokenV<BFloat16, 128>, 2>({}, rows)), "");
  }
  EXPECT_EQ((product_difference<MfmaPrefillV<BFloat16, 64, 16, 2, 2>, 4>({.dim = 64}, 64)), "");
  EXPECT_EQ(
      (product_difference<MfmaPrefillV<Half, 256>, 2>({.dtype = DType::kF16, .dim = 256}, 64)), "");
  EXPECT_EQ((product_difference<MfmaTokenV<Half, 64>, 2>({.dtype = DType::kF16, .dim = 64}, 64)),
            "");
  EXPECT_EQ((product_difference<MfmaTokenV<BFloat16, 256>, 2>({.dim = 256}, 64)), "");
  EXPECT_EQ((product_difference<MfmaTokenV<BFloat16, 512, 16>, 4>({.dim = 512}, 64)), "");
}

TEST(MfmaProduct, a_cache_of_e4m3_in_pages_at_any_address_is_multiplied) {
  const CacheFormat format{.kind = KeyRowsKind::kPaged,
                           .page_size = 3,
                           .dtype = DType::kF8E4M3,
                           .dim = 125,
                           .row_gap = 2,
                           .first = 3};
  EXPECT_EQ((product_difference<MfmaPrefillK<Half>, 4>(format, 61)), "");
  EXPECT_EQ((product_difference<MfmaPrefillV<BFloat16>, 2>(format, 61)), "");
  EXPECT_EQ((product_difference<MfmaTokenV<BFloat16, 128>, 2>(format, 61)), "");
}

TEST(MfmaProduct, the_comparison_finds_every_fault) {
  for (const Fault fault : {Fault::kDroppedRow, Fault::kWrongStage, Fault::kTwoPercent}) {
    EXPECT_NE((product_difference<MfmaPrefillK<BFloat16, 2>, 4>({}, 64, fault)), "");
    EXPECT_NE((product_difference<MfmaTokenK<BFloat16, 2>, 4>({}, 64, fault)), "");
    EXPECT_NE((product_difference<MfmaPrefillV<BFloat16, 128, 32, 2>, 2>({}, 64, fault)), "");
    EXPECT_NE((product_difference<MfmaTokenV<BFloat16, 128, 32, 2>, 2>({}, 64, fault)), "");
  }
}

// --- to_a --------------------------------------------------------------------------------------

TEST(MfmaToA, accumulators_are_the_p_fragment_in_the_order_of_transposed_v) {
  using I = Instruction<32>;
  // Score (query m, key n) of S [32, 64] is 64 m + n; a register holds two.
  for (int lane = 0; lane < 64; ++lane) {
    float d[2][16];
    for (int n = 0; n < 2; ++n) {
      for (int i = 0; i < 16; ++i) {
        const int key = 32 * n + 8 * (i / 4) + 4 * (lane / 32) + i % 4;
        d[n][i] = static_cast<float>(64 * (lane % 32) + key);
      }
    }
    for (int k = 0; k < 8; ++k) {
      uint32_t a[2];
      I::to_a(a, d, k, [](float low, float high) {
        return static_cast<uint32_t>(low) | static_cast<uint32_t>(high) << 16;
      });
      // Step k takes 4 of a lane's 8 keys of each 16, which are 0, 8, 1, 9, ... from 4 (lane / 32).
      for (int i = 0; i < 2; ++i) {
        const int key = 16 * (k / 2) + 4 * (lane / 32) + 2 * (k % 2) + i;
        const auto low = static_cast<uint32_t>(64 * (lane % 32) + key);
        EXPECT_EQ(a[i], low | (low + 8) << 16) << lane << ", " << k << ", " << i;
      }
    }
  }
}

// S = Q K' of four waves with 32 rows each, and O = S V with the accumulators of S as P.
struct MfmaChainKernel {
  using T = BFloat16;
  using I = Instruction<32>;
  using K = MfmaPrefillK<T>;
  using V = MfmaPrefillV<T>;
  struct Params {
    arch::GlobalPtr<const T> q;  // [128, 128]
    KVSource k, v;
    KeyRows k_keys, v_keys;
    arch::GlobalPtr<float> s;  // [128, 64]
    arch::GlobalPtr<float> o;  // [128, 128]
  };
  struct Storage {
    arch::SharedArray<T, 64 * 32, 128> k;
    arch::SharedArray<T, 32 * 128, 128> v;
  };
  static constexpr int kThreads = 256, kWarpSize = 64;

  static PAGODA_DEVICE void run(const Params& params) {
    auto& storage = arch::shared_storage<Storage>();
    const int lane = arch::lane_idx(), query = arch::thread_idx() / 64 * 32 + lane % 32;
    K k(storage.k.data(), 0);
    V v(storage.v.data(), 0);
    k.begin({params.k, params.k_keys, KVCacheCase::kSequence, 0}, 64);
    v.begin({params.v, params.v_keys, KVCacheCase::kSequence, 0}, 64);
    float s[2][16] = {}, o[4][16] = {};
    for (int step = 0; step < 4; ++step) {
      arch::syncthreads();
      k.load_from_dram();
      k.copy_to_shared();
      arch::syncthreads();
      multiply_k<0>(params, query, step, k, s);
      multiply_k<1>(params, query, step, k, s);
    }
    for (int step = 0; step < 2; ++step) {
      arch::syncthreads();
      v.load_from_dram();
      v.copy_to_shared();
      arch::syncthreads();
      multiply_v<0>(step, s, v, o);
      multiply_v<1>(step, s, v, o);
    }
    for (int i = 0; i < 16; ++i) {
      const int column = 8 * (i / 4) + 4 * (lane / 32) + i % 4;
      for (int n = 0; n < 2; ++n) arch::store(params.s + (query * 64 + 32 * n + column), s[n][i]);
      for (int n = 0; n < 4; ++n) arch::store(params.o + (query * 128 + 32 * n + column), o[n][i]);
    }
  }

 private:
  // Q of 16 elements: 8 consecutive ones of a lane's row, from global memory; a step takes 4.
  template <int k_mma>
  static void multiply_k(const Params& params, int query, int step, K& k, float (&s)[2][16]) {
    k.load_from_shared<k_mma>();
    const int first = step * 32 + k_mma * 16 + arch::lane_idx() / 32 * 8;
    for (int g = 0; g < 2; ++g) {
      uint32_t a[2];
      for (int i = 0; i < 2; ++i) {
        const int at = query * 128 + first + 4 * g + 2 * i;
        a[i] = arch::load((params.q + at).as<const uint32_t>());
      }
      for (int n = 0; n < 2; ++n) K::TensorCore::multiply(s[n], a, k.get_mma_tile()[n], g);
    }
  }
  template <int k_mma>
  static void multiply_v(int step, const float (&s)[2][16], V& v, float (&o)[4][16]) {
    v.load_from_shared<k_mma>();
    for (int g = 0; g < 2; ++g) {
      uint32_t a[2];
      I::to_a(a, s, (2 * step + k_mma) * 2 + g, [](float low, float high) {
        return bits_of<T>(low) | static_cast<uint32_t>(bits_of<T>(high)) << 16;
      });
      for (int n = 0; n < 4; ++n) V::TensorCore::multiply(o[n], a, v.get_mma_tile()[n], g);
    }
  }
};

TEST(MfmaToA, scores_are_multiplied_by_v_without_a_shuffle) {
  const KVCacheCase k({}, 64, 5), v({}, 64, 6);
  const std::vector<BFloat16> q = random_elements<BFloat16>(128 * 128, 7);
  std::vector<float> s(128 * 64), o(128 * 128);
  const emulator::Result result = emulator::launch<MfmaChainKernel>(
      emulator::shape_of<MfmaChainKernel>("chain", {1}),
      {q.data(), k.source(), v.source(), k.keys(), v.keys(), s.data(), o.data()},
      k.buffers(v.buffers({emulator::input("q", q.data(), q.size()),
                           emulator::output("s", s.data(), s.size()),
                           emulator::output("o", o.data(), o.size())})));
  ASSERT_EQ(all_reports(result), "");
  EXPECT_EQ(difference(s, exact_product(q, 128, 128, 64,
                                        [&](int i, int n) -> double { return k.at(n, i); })),
            "");
  // P is the scores, rounded.
  std::vector<BFloat16> p;
  p.reserve(s.size());
  for (const float score : s) p.push_back({bits_of<BFloat16>(score)});
  const auto expected =
      exact_product(p, 128, 64, 128, [&](int i, int n) -> double { return v.at(i, n); });
  EXPECT_EQ(difference(o, expected), "");
  EXPECT_NE(difference(o, exact_product(p, 128, 63, 128,
                                        [&](int i, int n) -> double { return v.at(i, n); })),
            "");
}

}  // namespace
}  // namespace pagoda::operand
