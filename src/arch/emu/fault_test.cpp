// A fault returns the right value but in its own mutant, and does not change an ordinary run.
#include "arch/fault.hpp"

#include <gtest/gtest.h>

#include "arch/memory.hpp"
#include "arch/thread.hpp"
#include "emulator/machine/launch.hpp"
#include "emulator/machine/mutation.hpp"

namespace pagoda::arch {
namespace {

struct Sum {
  struct Params {
    GlobalPtr<float> out;
  };
  struct Storage {};
  static constexpr int kThreads = 32;
  static PAGODA_DEVICE void run(const Params& params) {
    if (thread_idx() != 0) return;
    const float a = mutable_value("a replaced", 2.0F, 5.0F);
    const float b = mutable_factor("b x 1.02", 100.0F);
    store(params.out, a + b);
  }
};

float run(emulator::MutationSites* sites, uint64_t* steps = nullptr) {
  float out = 0;
  const emulator::Result result =
      emulator::launch<Sum>(emulator::shape_of<Sum>("sum", {1}), {&out},
                            {emulator::output("out", &out, 1)}, {.mutation = sites});
  EXPECT_TRUE(result.is_clean());
  if (steps != nullptr) *steps = result.statistics.steps;
  return out;
}

TEST(MutableValue, is_wrong_in_its_mutant_alone) {
  emulator::MutationSites sites;
  EXPECT_EQ(run(&sites), 102);
  ASSERT_EQ(sites.sites().size(), 2U);
  EXPECT_EQ(sites.sites()[0].primitive, "a replaced");
  EXPECT_EQ(sites.sites()[0].executions, 1U);
  EXPECT_EQ(sites.sites()[1].primitive, "b x 1.02");
  sites.apply(0, emulator::Mutation::kValue);
  EXPECT_EQ(run(&sites), 105);
  sites.apply(1, emulator::Mutation::kValue);
  EXPECT_EQ(run(&sites), 104);
  sites.apply_none();
  EXPECT_EQ(run(&sites), 102);
}

TEST(MutableValue, is_no_step_of_an_ordinary_run) {
  uint64_t plain = 0, scored = 0;
  emulator::MutationSites sites;
  EXPECT_EQ(run(nullptr, &plain), 102);
  EXPECT_EQ(run(&sites, &scored), 102);
  EXPECT_EQ(scored, plain + 2);
}

}  // namespace
}  // namespace pagoda::arch
