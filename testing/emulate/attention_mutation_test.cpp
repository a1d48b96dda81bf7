// The mutation score of every attention kernel. `ctest` runs a sample, one mutant for every eighth
// call; with PAGODA_NIGHTLY set all mutants run, and each kernel as it is over 100 seeds a mode.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <gtest/gtest.h>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "testing/emulate/mutation_score.hpp"
#include "testing/emulate/registry.hpp"

namespace pagoda::emulate {
namespace {

using emulator::Mutation;

bool is_nightly() { return std::getenv("PAGODA_NIGHTLY") != nullptr; }

// Mutants that survive, as docs/emulator.md explains: by kernel or family, primitive, file and
// kind, and how many of them in a kernel.
struct Explained {
  std::string_view kernels;  // prefix of their names
  std::string_view primitive, file;
  Mutation kind;
  int at_most = 1;
};
constexpr Explained kExplained[] = {
    // Ping-pong of the consumers: speed only.
    {"sm90/", "named_barrier_sync", "consumer.hpp", Mutation::kDrop},
    // In the emulator a wgmma completes for the four warps of its warpgroup at once.
    {"sm90/", "named_barrier_sync", "epilogue.hpp", Mutation::kDrop},
    {"sm90/decode", "mbarrier_init", "kernel.hpp", Mutation::kFewer},
    // The first loads of Q are issued before those of K and V: speed only.
    {"sm90/", "mbarrier_wait", "q_before_kv.hpp", Mutation::kDrop, 2},
    // Latent rows: P V of the second warpgroup after S of the first, speed only; its wait for V,
    // which follows from P; late lanes at the last tile, the first of a work tile.
    {"sm90/latent", "named_barrier_sync", "latent_values.hpp", Mutation::kDrop},
    {"sm90/latent", "mbarrier_wait", "latent_values.hpp", Mutation::kDrop},
    {"sm90/latent", "syncwarp", "load_latent.hpp", Mutation::kDrop},
    // The next work tile is drawn late: speed only.
    {"sm90/prefill", "mbarrier_wait", "kernel.hpp", Mutation::kDrop},
    {"sm90/prefill", "mbarrier_wait", "kernel.hpp", Mutation::kParity},
    // Widened tiles: the wait for V of the tile before, which the same warps widened before the
    // K for which the consumer has waited; and two as in the other prefills.
    {"sm90/prefill_widened", "mbarrier_wait", "consumer.hpp", Mutation::kDrop, 3},
    // The waits of a consumer for KV tiles that it leaves out.
    {"sm90/prefill", "mbarrier_wait", "consumer.hpp", Mutation::kDrop, 2},
    // e4m3: P's rounding hides 2 % of the weight of one of several splits; sm90/decode shows it.
    {"sm90/decode_fp8", "weight of the first split x 1.02", "split_rows.hpp", Mutation::kValue},
    // The limits of e4m3 queries, for P in e4m3, hide 2 % of a weight; sm90_decode/e4m3 shows it.
    {"sm90_decode/e4m3_queries", "weight of the first CTA x 1.02", "cluster_merge.hpp",
     Mutation::kValue},
    {"sm90_decode/e4m3_queries", "weight of the first warp x 1.02", "decode_mainloop.hpp",
     Mutation::kValue},
    // Between the initialisation of a barrier and an arrival of the same thread: for racecheck.
    {"sm90_decode/latent", "syncwarp", "cluster_merge.hpp", Mutation::kDrop},
    // Gathered K and V: the consumer's later fence also covers Q; a barrier for TMA is not used; a
    // wrong answer of test_wait only costs time; the lanes converge again at the next test.
    {"sm90/decode_gathered", "fence_proxy_async_shared", "load_q.hpp", Mutation::kDrop},
    {"sm90/decode_gathered", "mbarrier_init", "kernel.hpp", Mutation::kDrop},
    {"sm90/decode_gathered", "mbarrier_init", "kernel.hpp", Mutation::kMore},
    {"sm90/decode_gathered", "fence_mbarrier_init", "kernel.hpp", Mutation::kDrop},
    {"sm90/decode_gathered", "mbarrier_test_wait", "work_ring.hpp", Mutation::kParity},
    {"sm90/decode_gathered", "syncwarp", "gather.hpp", Mutation::kDrop},
    // The wait for Q: the scope is for padding rows that hold an O, which not every case has.
    {"sm100/", "mbarrier_wait_cluster", "mma.hpp", Mutation::kNarrow},
    // Released stages: any wait sees that a product is complete. Only a part of K that no product
    // reads needs the scope, which a load of V (of rings of their own) and the last waits share.
    {"sm100/mha_2q_pair", "mbarrier_wait_cluster", "load.hpp", Mutation::kNarrow},
    {"sm100/mha_2q_pair", "mbarrier_wait_cluster", "rings.hpp", Mutation::kNarrow},
};

const Explained* explanation(const EmulatedKernel& kernel, const Mutant& mutant) {
  const auto* const found =
      std::find_if(std::begin(kExplained), std::end(kExplained), [&](const Explained& known) {
        return std::string_view(kernel.name).starts_with(known.kernels) &&
               mutant.site.primitive == known.primitive && mutant.site.file == known.file &&
               mutant.kind == known.kind;
      });
  return found != std::end(kExplained) ? found : nullptr;
}

bool has_no_roles(const EmulatedKernel& kernel) {
  const std::string_view name = kernel.name;
  return name.starts_with("sm80/") || name.starts_with("gfx942/") || name.starts_with("simt/") ||
         name.starts_with("sm90_decode/");
}

class Mutants : public testing::TestWithParam<const EmulatedKernel*> {};

TEST_P(Mutants, are_shown_but_for_those_that_are_explained) {
  const EmulatedKernel& kernel = *GetParam();
  MutationPlan plan{.is_sample = !is_nightly(), .max_runs_of = {}};
  if (plan.is_sample) {
    // Without roles and rings there are few calls.
    plan.stride = has_no_roles(kernel) ? 2 : 8;
    plan.offset = static_cast<size_t>(&kernel - all_kernels().data());
    // What is expected to survive gets few runs.
    plan.max_runs_of = [&](const Mutant& mutant) {
      return explanation(kernel, mutant) != nullptr ? 2 : plan.max_runs;
    };
  }
  const MutationScore score = score_mutants(kernel, plan);
  EXPECT_GE(score.mutants.size(), 4U) << kernel.name;
  std::map<const Explained*, int> survivors;
  for (const Mutant& mutant : score.mutants) {
    if (mutant.is_killed()) continue;
    const Explained* const why = explanation(kernel, mutant);
    EXPECT_TRUE(why != nullptr && ++survivors[why] <= why->at_most)
        << kernel.name << ": " << to_string(mutant);
  }
  // A sample is too small for a percentage.
  if (!plan.is_sample) {
    EXPECT_GE(10 * score.killed(), 9 * score.mutants.size()) << kernel.name;
  }
  std::printf("%s: %zu of %zu mutants shown\n", kernel.name, score.killed(), score.mutants.size());
}

TEST_P(Mutants, are_of_a_kernel_that_is_right_over_many_seeds) {
  // EmulatedKernels has the first.
  const uint64_t first = is_nightly() ? 1 : 2, last = is_nightly() ? 100 : 2;
  for (const emulator::Mode mode : emulator::kModes) {
    for (uint64_t seed = first; seed <= last; ++seed) {
      const Outcome outcome = GetParam()->run({.mode = mode, .seed = seed});
      ASSERT_TRUE(outcome.is_right())
          << GetParam()->name << ' ' << name(mode) << ' ' << seed << ' ' << outcome.first_mismatch
          << (outcome.result.is_clean() ? "" : to_string(outcome.result.reports[0]));
    }
  }
}

std::vector<const EmulatedKernel*> attention_kernels() {
  std::vector<const EmulatedKernel*> kernels;
  for (const EmulatedKernel& kernel : all_kernels()) {
    if (is_attention(kernel)) kernels.push_back(&kernel);
  }
  return kernels;
}

std::string test_name(const testing::TestParamInfo<const EmulatedKernel*>& info) {
  std::string name = info.param->name;
  std::replace(name.begin(), name.end(), '/', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Attention, Mutants, testing::ValuesIn(attention_kernels()), test_name);

}  // namespace
}  // namespace pagoda::emulate
