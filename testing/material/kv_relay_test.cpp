// Producer and consumer together: every tile moved once, in order, in every scheduler mode over 100
// seeds; every synchronisation of both kernels, left out, is noticed.
#include "testing/material/kv_relay.hpp"

#include <cstdint>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "emulator/machine/launch.hpp"
#include "emulator/machine/mutation.hpp"

namespace pagoda {
namespace {

using emulator::Mode;

struct Run {
  emulator::Result result;
  bool is_right = true;
};

template <class Kernel>
Run run(int num_tiles, emulator::Options options) {
  constexpr pipeline::KVTiling tiling = Kernel::tiling;
  constexpr int kPanel = tiling.swizzle_elements(2);
  const int rows = num_tiles * tiling.BN;
  std::vector<uint16_t> k(static_cast<size_t>(rows * tiling.padded_depth)), v(k.size());
  for (size_t i = 0; i < k.size(); ++i) {
    k[i] = static_cast<uint16_t>(i * 7919 + 3);
    v[i] = static_cast<uint16_t>(i * 104729 + 11);
  }
  std::vector<uint32_t> out(static_cast<size_t>(2 * num_tiles * kv_relay::kConsumers), 0xdeadbeef);
  const auto map_of = [&](const std::vector<uint16_t>& tensor) {
    return arch::TensorMapSpec{
        .rank = 2,
        .address = reinterpret_cast<uint64_t>(tensor.data()),
        .dims = {static_cast<uint64_t>(tiling.padded_depth), static_cast<uint64_t>(rows)},
        .strides_bytes = {static_cast<uint64_t>(tiling.padded_depth) * 2},
        .box = {kPanel, tiling.BN},
        .swizzle = tiling.swizzle};
  };
  Run run;
  run.result = emulator::launch<Kernel>(
      emulator::shape_of<Kernel>("relay", {1}), {map_of(k), map_of(v), out.data(), num_tiles},
      {emulator::input("k", k.data(), k.size()), emulator::input("v", v.data(), v.size()),
       emulator::output("out", out.data(), out.size())},
      options);
  // Which thread reads which 16 bytes depends on the layout; the sum over all threads does not.
  for (int tile = 0; tile < num_tiles; ++tile) {
    for (const bool is_v : {false, true}) {
      uint32_t expected = 0, got = 0;
      const auto elements = static_cast<size_t>(tiling.BN * tiling.padded_depth);
      for (size_t i = 0; i < elements; ++i) {
        expected += (is_v ? v : k)[static_cast<size_t>(tile) * elements + i];
      }
      // The shared ring writes V of a tile before K of the next: K0 V0 K1 V1 all the same.
      const auto first = static_cast<size_t>((2 * tile + (is_v ? 1 : 0)) * kv_relay::kConsumers);
      for (size_t i = 0; i < kv_relay::kConsumers; ++i) got += out[first + i];
      run.is_right = run.is_right && got == expected;
    }
  }
  return run;
}

struct Shared2 {
  static constexpr pipeline::KVTiling kv{
      .BN = 32, .BK0 = 64, .BK1 = 32, .padded_depth = 64, .num_kv_stages = 2};
};
struct Shared3 {
  static constexpr pipeline::KVTiling kv{
      .BN = 32, .BK0 = 64, .BK1 = 32, .padded_depth = 64, .num_kv_stages = 3};
};
struct Shared5 {
  static constexpr pipeline::KVTiling kv{
      .BN = 16, .BK0 = 128, .BK1 = 16, .padded_depth = 128, .num_kv_stages = 5};
};
struct Split1x2 {
  static constexpr pipeline::KVTiling kv{
      .BN = 32, .BK0 = 64, .BK1 = 32, .padded_depth = 128, .num_kv_stages = 1, .num_qk_stages = 2};
};
struct Split2x2 {
  static constexpr pipeline::KVTiling kv{
      .BN = 32, .BK0 = 64, .BK1 = 32, .padded_depth = 128, .num_kv_stages = 2, .num_qk_stages = 2};
};
struct Split3x4 {
  static constexpr pipeline::KVTiling kv{.BN = 16,
                                         .BK0 = 32,
                                         .BK1 = 16,
                                         .padded_depth = 128,
                                         .num_kv_stages = 3,
                                         .num_qk_stages = 4,
                                         .swizzle = arch::Swizzle::k64B};
};

template <class Kernel>
class KVRelay : public testing::Test {};
using Kernels =
    testing::Types<SharedRingRelay<Shared2>, SharedRingRelay<Shared3>, SharedRingRelay<Shared5>,
                   SplitRingRelay<Split1x2>, SplitRingRelay<Split2x2>, SplitRingRelay<Split3x4>>;
TYPED_TEST_SUITE(KVRelay, Kernels);

TYPED_TEST(KVRelay, every_tile_is_moved_once_and_in_order) {
  for (const Mode mode : emulator::kModes) {
    for (uint64_t seed = 1; seed <= 100; ++seed) {
      const int num_tiles = 1 + static_cast<int>(seed % 7);
      const Run result = run<TypeParam>(num_tiles, {.mode = mode, .seed = seed});
      ASSERT_TRUE(result.result.is_clean()) << emulator::name(mode) << '\n'
                                            << to_string(result.result.reports[0]);
      ASSERT_TRUE(result.is_right) << emulator::name(mode) << " seed " << seed;
    }
  }
}

// Counts and parities: `pagoda emulate pipeline/ --mutate`.
TYPED_TEST(KVRelay, every_synchronisation_left_out_and_every_shared_stage_is_noticed) {
  emulator::MutationSites sites;
  run<TypeParam>(7, {.mutation = &sites});
  for (size_t site = 0; site < sites.sites().size(); ++site) {
    const emulator::MutationSite mutant = sites.sites()[site];
    for (const emulator::Mutation kind : {emulator::Mutation::kDrop, emulator::Mutation::kShared}) {
      if (!mutant.kinds.has(kind)) continue;
      sites.apply(static_cast<int>(site), kind);
      bool is_noticed = false;
      for (uint64_t seed = 1; seed <= 20 && !is_noticed; ++seed) {
        const Run result = run<TypeParam>(
            7, {.mode = emulator::mutation_mode(seed), .seed = seed, .mutation = &sites});
        is_noticed = !result.result.is_clean() || !result.is_right;
      }
      EXPECT_TRUE(is_noticed) << mutant.primitive << " at " << mutant.file << ':' << mutant.line
                              << ", role " << mutant.role << ": " << name(kind);
    }
  }
}

}  // namespace
}  // namespace pagoda
