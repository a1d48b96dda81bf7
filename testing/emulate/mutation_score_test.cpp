// Each demonstration kernel is correct in every mode and each planted bug is found. A kernel whose
// synchronisation is all needed has no surviving mutant; one with a redundant barrier has.
#include "testing/emulate/mutation_score.hpp"

#include <gtest/gtest.h>
#include <set>
#include <string>

#include "arch/memory.hpp"
#include "arch/named_barrier.hpp"
#include "arch/thread.hpp"
#include "emulator/machine/launch.hpp"
#include "testing/emulate/registry.hpp"

namespace pagoda::emulate {
namespace {

TEST(EmulatedKernels, each_is_right_or_shows_its_planted_bug_in_every_mode) {
  std::set<std::string> names;
  for (const EmulatedKernel& kernel : all_kernels()) {
    EXPECT_TRUE(names.insert(kernel.name).second) << kernel.name << " is there twice";
    EXPECT_EQ(find_kernel(kernel.name), &kernel);
    // The attention kernels take up to a second.
    const uint64_t seeds = is_attention(kernel) ? 1 : 10;
    for (const emulator::Mode mode : emulator::kModes) {
      for (uint64_t seed = 1; seed <= seeds; ++seed) {
        const Outcome outcome = kernel.run({.mode = mode, .seed = seed});
        if (kernel.planted) {
          ASSERT_FALSE(outcome.result.is_clean()) << kernel.name << ' ' << name(mode);
          EXPECT_EQ(outcome.result.reports[0].kind, *kernel.planted)
              << kernel.name << ' ' << name(mode) << '\n'
              << to_string(outcome.result.reports[0]);
        } else {
          EXPECT_GT(outcome.checked, 0U) << kernel.name;
          EXPECT_TRUE(outcome.is_right())
              << kernel.name << ' ' << name(mode) << ' ' << seed << ' ' << outcome.first_mismatch
              << (outcome.result.is_clean() ? "" : to_string(outcome.result.reports[0]));
        }
      }
    }
  }
  EXPECT_EQ(find_kernel("demo"), nullptr);
}

// One thread writes, the other warp reads; one of the two barriers between them is not needed.
struct SpareBarrier {
  struct Params {
    arch::GlobalPtr<uint32_t> out;
  };
  struct Storage {
    arch::SharedArray<uint32_t, 4> word;
  };
  static constexpr int kThreads = 64;
  static PAGODA_DEVICE void run(const Params& params) {
    auto& storage = arch::shared_storage<Storage>();
    if (arch::thread_idx() == 0) arch::store(storage.word.at(0), 7U);
    arch::syncthreads();
    arch::syncthreads();
    if (arch::thread_idx() == 63) arch::store(params.out, arch::load(storage.word.at(0)));
  }
};

TEST(MutationScore, a_redundant_barrier_survives_and_a_needed_one_does_not) {
  const EmulatedKernel spare = {"test/spare", "sm_80", "", [](const emulator::Options& options) {
                                  uint32_t out = 0;
                                  Outcome outcome;
                                  outcome.result = emulator::launch<SpareBarrier>(
                                      emulator::shape_of<SpareBarrier>("spare", {1}), {&out},
                                      {emulator::output("out", &out, 1)}, options);
                                  outcome.check("out", 0, out, 7U);
                                  return outcome;
                                }};
  const MutationScore score = score_mutants(spare);
  ASSERT_EQ(score.mutants.size(), 2U);
  EXPECT_EQ(score.killed(), 0U) << "either of the two is enough";
  EXPECT_EQ(score.mutants[0].runs, 20);
  EXPECT_EQ(score.mutants[0].site.primitive, "syncthreads");
  EXPECT_EQ(score.mutants[0].site.executions, 64U);
  EXPECT_LT(score.mutants[0].site.line, score.mutants[1].site.line);

  for (const char* demo : {"demo/relay", "demo/copy_ring", "demo/last_block_sum"}) {
    const MutationScore demo_score = score_mutants(*find_kernel(demo));
    EXPECT_GT(demo_score.mutants.size(), 2U);
    for (const Mutant& mutant : demo_score.mutants) {
      EXPECT_TRUE(mutant.is_killed()) << demo << ": " << mutant.site.primitive << " at "
                                      << mutant.site.file << ':' << mutant.site.line;
    }
  }
}

}  // namespace
}  // namespace pagoda::emulate
