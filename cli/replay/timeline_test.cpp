// The timeline keeps every token and every second.
#include "cli/replay/timeline.hpp"

#include <gtest/gtest.h>

namespace pagoda::replay {
namespace {

TEST(Timeline, tokens_and_gauges_are_kept_whatever_the_bins) {
  std::vector<StepSample> steps;
  double now = 0, tokens = 0, held = 0;
  for (int i = 0; i < 500; ++i) {
    StepSample step{.start_s = now,
                    .end_s = now + 0.001 * (i % 7),
                    .prefill_tokens = 3 * i,
                    .decode_tokens = i % 5,
                    .running = 2,
                    .held_share = 0.5F};
    now = step.end_s + (i % 11 == 0 ? 0.02 : 0);  // sometimes idle
    tokens += step.prefill_tokens;
    held += 0.5 * (step.end_s - step.start_s);
    steps.push_back(step);
  }
  for (const int64_t num_bins : {1, 7, 200, 5000}) {
    const auto bins = make_timeline(steps, num_bins);
    ASSERT_EQ(std::ssize(bins), num_bins);
    const double width = steps.back().end_s / static_cast<double>(num_bins);
    double sum = 0, sum_held = 0;
    for (const TimelineBin& bin : bins) {
      sum += bin.prefill_tokens_per_s * width;
      sum_held += bin.held_share * width;
      EXPECT_LE(bin.held_share, 0.5 + 1e-9);
    }
    EXPECT_NEAR(sum, tokens, 1e-6 * tokens);
    EXPECT_NEAR(sum_held, held, 1e-6);
  }
}

TEST(Timeline, an_idle_time_shows_what_the_cache_keeps) {
  const std::vector<StepSample> steps = {
      {.start_s = 0, .end_s = 1, .running = 1, .held_share = 0.5F, .cached_share_after = 0.25F},
      {.start_s = 3, .end_s = 4, .running = 1, .held_share = 0.5F}};
  const auto bins = make_timeline(steps, 4);
  EXPECT_EQ(bins[0].held_share, 0.5);
  EXPECT_EQ(bins[1].held_share, 0);
  EXPECT_EQ(bins[1].running, 0);
  EXPECT_EQ(bins[1].cached_share, 0.25);
  EXPECT_EQ(bins[2].cached_share, 0.25);
  EXPECT_EQ(bins[3].held_share, 0.5);
}

TEST(Timeline, is_empty_where_nothing_took_time) {
  EXPECT_TRUE(make_timeline({}, 10).empty());
  const std::vector<StepSample> instant(3);
  EXPECT_TRUE(make_timeline(instant, 10).empty());
}

}  // namespace
}  // namespace pagoda::replay
