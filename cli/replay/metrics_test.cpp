// Percentiles, occupancy, roofline share and the checksum.
#include "cli/replay/metrics.hpp"

#include <gtest/gtest.h>

namespace pagoda::replay {
namespace {

TEST(Metrics, percentiles_are_values_that_occurred) {
  std::vector<double> values;
  for (int i = 100; i >= 1; --i) values.push_back(i);
  const Percentiles p = percentiles(values);
  EXPECT_EQ(p.p50, 50);
  EXPECT_EQ(p.p90, 90);
  EXPECT_EQ(p.p99, 99);
  EXPECT_EQ(p.mean, 50.5);
  EXPECT_EQ(percentiles({7}).p99, 7);
  EXPECT_EQ(percentiles({}).count, 0);
}

TEST(Metrics, only_requests_that_got_there_count) {
  Metrics metrics;
  metrics.requests = {{.arrival_s = 1, .first_token_s = 3, .finish_s = 7, .output_tokens = 5},
                      {.arrival_s = 1, .first_token_s = 2, .output_tokens = 5},
                      {.arrival_s = 2, .first_token_s = 3, .finish_s = 3, .output_tokens = 1},
                      {.arrival_s = 9}};
  EXPECT_EQ(metrics.completed(), 2);
  EXPECT_EQ(metrics.ttft().count, 3);
  EXPECT_EQ(metrics.ttft().p99, 2);
  EXPECT_EQ(metrics.tpot().count, 1) << "one token has no time per token";
  EXPECT_EQ(metrics.tpot().p50, 1);
}

TEST(Metrics, occupancy_is_weighted_by_time) {
  Metrics metrics;
  metrics.steps = {{.end_s = 3, .held_share = 0.2F},
                   {.start_s = 3, .end_s = 4, .held_share = 1.0F}};
  EXPECT_NEAR(metrics.mean_occupancy(), 0.4, 1e-6);
  // Nothing is held while nothing runs.
  metrics.steps.push_back({.start_s = 7, .end_s = 8, .held_share = 0});
  EXPECT_NEAR(metrics.mean_occupancy(), 0.2, 1e-6);
  EXPECT_EQ(metrics.peak_occupancy(), 1.0);
}

TEST(Metrics, the_roofline_share_takes_the_binding_ceiling_of_each_step) {
  Metrics metrics;
  metrics.cost.attention_seconds = 10;
  metrics.steps = {{.flops = 4e9, .bytes = 1}, {.flops = 1, .bytes = 2e9}};
  EXPECT_NEAR(metrics.roofline_share(1e9, 2e9), 0.5, 1e-9);
  EXPECT_EQ(metrics.roofline_share(0, 1), 0);
}

TEST(Metrics, the_checksum_sees_every_byte_and_its_place) {
  std::vector<std::byte> bytes(77);
  const uint64_t zero = checksum(1, bytes);
  EXPECT_NE(checksum(2, bytes), zero);
  for (std::byte& byte : bytes) {
    byte = std::byte{1};
    EXPECT_NE(checksum(1, bytes), zero);
    byte = std::byte{0};
  }
  bytes[3] = std::byte{1};
  const uint64_t third = checksum(1, bytes);
  std::swap(bytes[3], bytes[35]);
  EXPECT_NE(checksum(1, bytes), third);
}

}  // namespace
}  // namespace pagoda::replay
