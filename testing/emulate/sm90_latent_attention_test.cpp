// Small launches of the Hopper kernel for latent attention, over seeds of data and interleavings.
#include <cstdint>
#include <gtest/gtest.h>

#include "testing/emulate/attention.hpp"

namespace pagoda::emulate {
namespace {

void expect_right(Outcome (*run)(const emulator::Options&)) {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    const Outcome outcome = run({.seed = seed});
    EXPECT_TRUE(outcome.is_right()) << seed << ": " << outcome.first_mismatch;
    EXPECT_GT(outcome.checked, 1000U);
  }
}

TEST(LatentAttention, row_tiles_of_two_head_tiles_in_a_stream_k_partition) {
  expect_right(run_latent);
}
TEST(LatentAttention, splits_that_all_ctas_of_a_row_tile_merge) {
  expect_right(run_latent_shared_merge);
}
TEST(LatentAttention, windows_in_the_partition_of_any_packed_rows) {
  expect_right(run_latent_window);
}

}  // namespace
}  // namespace pagoda::emulate
