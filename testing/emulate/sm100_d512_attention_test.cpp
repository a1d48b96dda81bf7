// The Blackwell kernel for head dims above 128 on the emulator with the schedule that no other test
// runs: one tile a CTA pair.
#include <gtest/gtest.h>

#include "testing/emulate/attention.hpp"

namespace pagoda::emulate {
namespace {

TEST(SM100MHAD512, one_tile_per_pair_is_right) {
  using emulator::Mode;
  for (const Mode mode : {Mode::kRoundRobin, Mode::kRandom, Mode::kEager, Mode::kLazy}) {
    for (uint64_t seed = 1; seed <= 2; ++seed) {
      const Outcome outcome = run_mha_d512_transient({.mode = mode, .seed = seed});
      EXPECT_TRUE(outcome.is_right()) << outcome.first_mismatch;
      EXPECT_GT(outcome.checked, 0U);
    }
  }
}

}  // namespace
}  // namespace pagoda::emulate
