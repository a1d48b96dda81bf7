// The Blackwell kernel on the emulator with the schedule that no other test runs: one tile a CTA.
#include <gtest/gtest.h>

#include "testing/emulate/attention.hpp"

namespace pagoda::emulate {
namespace {

void expect_right_in_every_mode(Outcome (*run)(const emulator::Options&)) {
  using emulator::Mode;
  for (const Mode mode : {Mode::kRoundRobin, Mode::kRandom, Mode::kEager, Mode::kLazy}) {
    for (uint64_t seed = 1; seed <= 2; ++seed) {
      const Outcome outcome = run({.mode = mode, .seed = seed});
      EXPECT_TRUE(outcome.is_right()) << outcome.first_mismatch;
      EXPECT_GT(outcome.checked, 0U);
    }
  }
}

TEST(SM100MHA2Q, one_tile_per_cta_is_right) { expect_right_in_every_mode(run_mha_2q_transient); }
TEST(SM100MHA2Q, one_tile_per_pair_with_k_in_parts_is_right) {
  expect_right_in_every_mode(run_mha_2q_pair_transient);
}

}  // namespace
}  // namespace pagoda::emulate
