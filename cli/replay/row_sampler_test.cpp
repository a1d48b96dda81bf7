// The sampler: nothing that matters is left out, and the cost of a step is bounded.
#include "cli/replay/row_sampler.hpp"

#include <gtest/gtest.h>
#include <set>

namespace pagoda::replay {
namespace {

Step mixed_step() {
  Step step;
  step.chunks = {{.sequence = 4, .start = 900, .tokens = 1, .phase = Phase::kDecode},
                 {.sequence = 1, .start = 70, .tokens = 1, .phase = Phase::kDecode},
                 {.sequence = 2, .start = 512, .tokens = 100, .phase = Phase::kReused},
                 {.sequence = 3, .start = 64, .tokens = 30, .phase = Phase::kReused},
                 {.sequence = 0, .start = 0, .tokens = 50, .phase = Phase::kRecompute},
                 {.sequence = 5, .start = 100, .tokens = 200, .phase = Phase::kPrefill}};
  for (const Chunk& chunk : step.chunks) step.tokens += chunk.tokens;
  return step;
}

TEST(RowSampler, every_phase_and_every_reused_prefix_is_sampled_from_its_own_rows) {
  const Step step = mixed_step();
  RowSampler sampler(1, 3, 8, 1);
  std::set<int64_t> batch_rows;
  std::set<int32_t> layers, heads;
  for (int repeat = 0; repeat < 300; ++repeat) {
    std::multiset<Phase> phases;
    for (const SampledRow& row : sampler.choose(step)) {
      phases.insert(row.phase);
      int64_t first = 0;
      for (const Chunk& chunk : step.chunks) {
        if (chunk.sequence == row.sequence) {
          EXPECT_EQ(chunk.phase, row.phase);
          EXPECT_EQ(row.batch_row - first, row.row.position - chunk.start);
          EXPECT_GE(row.row.position, chunk.start);
          EXPECT_LT(row.row.position, chunk.start + chunk.tokens);
        }
        first += chunk.tokens;
      }
      batch_rows.insert(row.batch_row);
      layers.insert(row.row.layer);
      heads.insert(row.row.q_head);
    }
    EXPECT_EQ(phases.size(), 5U);  // two of them reused
    EXPECT_EQ(phases.count(Phase::kReused), 2U);
  }
  EXPECT_EQ(layers.size(), 3U);
  EXPECT_EQ(heads.size(), 8U);
  EXPECT_GT(batch_rows.size(), 200U);
}

TEST(RowSampler, a_low_rate_still_samples_the_first_step_of_a_phase) {
  RowSampler sampler(0.01, 1, 1, 1);
  EXPECT_EQ(sampler.choose(mixed_step()).size(), 5U);
  size_t later = 0;
  for (int repeat = 0; repeat < 1000; ++repeat) later += sampler.choose(mixed_step()).size() - 2;
  EXPECT_GT(later, 5U);  // 3 phases, 1 in 100 each
  EXPECT_LT(later, 100U);
}

TEST(RowSampler, rate_zero_checks_nothing_and_a_high_rate_several) {
  EXPECT_TRUE(RowSampler(0, 1, 1, 1).choose(mixed_step()).empty());
  EXPECT_EQ(RowSampler(4, 1, 1, 1).choose(mixed_step()).size(), 3U * 4U + 2U);
}

}  // namespace
}  // namespace pagoda::replay
