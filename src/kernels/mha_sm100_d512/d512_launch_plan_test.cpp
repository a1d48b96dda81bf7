// Schedules and KV splits of head dims above 128, planned without reading a length.
#include <gtest/gtest.h>

#include "kernels/mha_sm100_d512/launch_plan.hpp"
#include "pagoda/mask.hpp"

namespace pagoda::mha_sm100_d512 {
namespace {

constexpr int32_t kMultiprocessors = 148, kPairs = kMultiprocessors / kPair;
constexpr Shape kD256 = kShapes[0];

// One sequence, one KV head. The problem refers to the mask.
core::Problem call(const Mask& mask, int32_t tokens, int32_t keys) {
  core::Problem p;
  p.batch = 1;
  p.num_q_heads = p.group = 8;
  p.num_kv_heads = 1;
  p.head_dim_qk = p.head_dim_vo = 256;
  p.is_ragged = true;
  p.has_host_lengths = false;
  p.total_q = p.max_seqlen_q = tokens;
  p.max_seqlen_kv = p.max_seqlen_kv_bound = keys;
  p.q.dtype = p.k.dtype = p.v.dtype = p.out.dtype = DType::kBF16;
  p.mask = mask.nodes();
  return p;
}

TEST(LaunchPlan, decode_over_a_long_cache_takes_all_pairs) {
  const Mask mask = Mask::causal();
  const auto plan = make_plan(kD256, call(mask, 1, 131'072), kMultiprocessors, {});
  ASSERT_EQ(plan->num_launches, 1);
  EXPECT_EQ(plan->launches[0].schedule, kernels::Schedule::kStreamK);
  EXPECT_EQ(plan->launches[0].ctas, kPair * kPairs);
  EXPECT_EQ(plan->num_work_items, kMultiprocessors);
  EXPECT_EQ(plan->num_split_rows, 8);
  EXPECT_GT(plan->workspace_bytes, plan->zeroed_workspace_bytes);
  EXPECT_GT(plan->zeroed_workspace_bytes, 0);
}

TEST(LaunchPlan, decode_over_few_keys_has_a_pair_for_every_key_tile) {
  const Mask mask = Mask::causal();
  const auto plan = make_plan(kD256, call(mask, 1, 3 * 128), kMultiprocessors, {});
  EXPECT_LE(plan->launches[0].ctas, kPair * 4);  // a window may begin inside of a tile
}

TEST(LaunchPlan, a_chunk_over_a_long_cache_is_split_over_the_pairs) {
  const Mask mask = Mask::causal();
  // 256 tokens of 8 heads: eight tiles of 32 tokens.
  const auto plan = make_plan(kD256, call(mask, 256, 131'072), kMultiprocessors, {});
  ASSERT_EQ(plan->num_launches, 1);
  const Launch& launch = plan->launches[0];
  EXPECT_EQ(launch.schedule, kernels::Schedule::kQueue);
  EXPECT_LE(8 * launch.num_splits, kPairs);
  EXPECT_GE(8 * launch.num_splits, kPairs / 2);
  EXPECT_EQ(plan->num_split_rows, 256 * 8);
}

TEST(LaunchPlan, options_choose_schedule_and_splits) {
  const Mask mask = Mask::causal();
  const core::Problem p = call(mask, 256, 131'072);
  const auto transient =
      make_plan(kD256, p, kMultiprocessors, {.schedule = Schedule::kTransient, .num_kv_splits = 5});
  EXPECT_EQ(transient->launches[0].num_splits, 5);
  EXPECT_EQ(transient->launches[0].ctas, kPair * 5 * 256 / 32);
  const auto whole = make_plan(kD256, p, kMultiprocessors, {.num_kv_splits = 1});
  EXPECT_EQ(whole->num_split_rows, 0);
  const auto invariant =
      make_plan(kD256, call(mask, 1, 131'072), kMultiprocessors, {.is_batch_invariant = true});
  EXPECT_EQ(invariant->num_split_rows, 0);
}

}  // namespace
}  // namespace pagoda::mha_sm100_d512
