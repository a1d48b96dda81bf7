// Producer and consumer pipelines together: every tile is moved once, in order, in every scheduler
// mode over 100 seeds; a mutant without any one of the synchronisations of both kernels is
// detected.
#include <cstdint>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "emulator/machine/launch.hpp"
#include "emulator/machine/mutation.hpp"
#include "testing/material/kv_relay_case.hpp"

namespace pagoda::material {
namespace {

using emulator::Mode;

struct Run {
  emulator::Result result;
  bool is_right = false;
};

template <class Kernel>
Run run(int num_tiles, emulator::Options options) {
  const RelayCase<Kernel> test(num_tiles, options.seed);
  std::vector<uint32_t> out(test.sums().size(), 0xdeadbeef);
  Run run;
  run.result =
      emulator::launch<Kernel>(emulator::shape_of<Kernel>("relay", {1}),
                               test.params(test.kv().data(), out.data(),
                                           [](const arch::TensorMapSpec& spec) { return spec; }),
                               {emulator::input("kv", test.kv().data(), test.kv().size()),
                                emulator::output("out", out.data(), out.size())},
                               options);
  run.is_right = out == test.sums();
  return run;
}

struct SharedRing2 {
  static constexpr pipeline::KVTiling kv{
      .BN = 32, .BK0 = 64, .BK1 = 32, .padded_depth = 64, .num_kv_stages = 2};
};
struct SharedRing5 {
  static constexpr pipeline::KVTiling kv{
      .BN = 16, .BK0 = 128, .BK1 = 16, .padded_depth = 128, .num_kv_stages = 5};
};
struct SharedRing2x4 {
  static constexpr pipeline::KVTiling kv{.BN = 64,
                                         .BK0 = 32,
                                         .BK1 = 16,
                                         .padded_depth = 128,
                                         .num_kv_stages = 2,
                                         .num_qk_stages = 4,
                                         .num_pv_stages = 4,
                                         .swizzle = arch::Swizzle::k64B};
};
struct SplitRings1x2 {
  static constexpr pipeline::KVTiling kv{
      .BN = 32, .BK0 = 64, .BK1 = 32, .padded_depth = 128, .num_kv_stages = 1, .num_qk_stages = 2};
};
template <class Kernel>
class KVRelay : public testing::Test {};
using Kernels = testing::Types<SharedRingRelay<SharedRing2>, SharedRingRelay<SharedRing3>,
                               SharedRingRelay<SharedRing5>, SharedRingRelay<SharedRing3x2>,
                               SharedRingRelay<SharedRing2x4>, SplitRingRelay<SplitRings1x2>,
                               SplitRingRelay<SplitRings2x2>, SplitRingRelay<SplitRings3x4>>;
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

// Wrong counts and parities are mutants of `pagoda emulate pipeline/ --mutate`.
TYPED_TEST(KVRelay, every_dropped_synchronisation_and_every_shared_stage_is_detected) {
  emulator::MutationSites sites;
  run<TypeParam>(7, {.mutation = &sites});
  for (size_t site = 0; site < sites.sites().size(); ++site) {
    const emulator::MutationSite mutant = sites.sites()[site];
    for (const emulator::Mutation kind : {emulator::Mutation::kDrop, emulator::Mutation::kShared}) {
      if (!mutant.kinds.has(kind)) continue;
      sites.apply(static_cast<int>(site), kind);
      bool is_detected = false;
      for (uint64_t seed = 1; seed <= 20 && !is_detected; ++seed) {
        const Run result = run<TypeParam>(
            7, {.mode = emulator::mutation_mode(seed), .seed = seed, .mutation = &sites});
        is_detected = !result.result.is_clean() || !result.is_right;
      }
      EXPECT_TRUE(is_detected) << mutant.primitive << " at " << mutant.file << ':' << mutant.line
                               << ", role " << mutant.role << ": " << name(kind);
    }
  }
}

}  // namespace
}  // namespace pagoda::material
