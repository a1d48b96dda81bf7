// Schedules and KV splits, planned without reading a length.
#include "kernels/mha_sm100/launch_plan.hpp"

#include <gtest/gtest.h>
#include <utility>

#include "kernels/mha_sm100/instances.hpp"
#include "pagoda/mask.hpp"

namespace pagoda::mha_sm100 {
namespace {

constexpr int32_t kMultiprocessors = 148;

// A prefill chunk of 256 tokens, one KV head, a group of 4, over a long cache: four work tiles.
// The problem refers to the mask.
core::Problem chunk(const Mask& mask, int32_t keys = 100'000) {
  core::Problem p;
  p.batch = 1;
  p.num_q_heads = 4;
  p.num_kv_heads = 1;
  p.group = 4;
  p.head_dim_qk = p.head_dim_vo = 128;
  p.is_ragged = true;
  p.has_host_lengths = false;
  p.total_q = p.max_seqlen_q = 256;
  p.max_seqlen_kv = p.max_seqlen_kv_bound = keys;
  p.q.dtype = p.k.dtype = p.v.dtype = p.out.dtype = DType::kBF16;
  p.mask = mask.nodes();
  return p;
}

int32_t num_splits(const Mask& mask, int32_t keys = 100'000) {
  const auto plan = make_plan(kShapes[1], chunk(mask, keys), kMultiprocessors, {});
  for (int32_t i = 0; i < plan->num_launches; ++i) {
    if (plan->launches[i].schedule == kernels::Schedule::kQueue)
      return plan->launches[i].num_splits;
  }
  return 0;
}

TEST(LaunchPlan, splits_fill_the_multiprocessors) {
  EXPECT_EQ(num_splits(Mask::causal()), kMultiprocessors / 4);
}

TEST(LaunchPlan, short_caches_have_parts_of_four_tiles_at_least) {
  EXPECT_EQ(num_splits(Mask::causal(), 3 * 4 * 128), 3);
  EXPECT_EQ(num_splits(Mask::causal(), 100), 1);
}

TEST(LaunchPlan, splits_are_sized_by_visible_keys) {
  EXPECT_EQ(num_splits(Mask::window(127, 0)), 1);   // 191 keys: two tiles
  EXPECT_EQ(num_splits(Mask::window(2047, 0)), 4);  // 2111: 17 tiles
  EXPECT_EQ(num_splits(Mask::window(2047, 0) & Mask::causal()), 4);
  EXPECT_EQ(num_splits(Mask::chunked(1024) & Mask::causal()), 4);       // two chunks: 16 tiles
  EXPECT_EQ(num_splits(Mask::window(2047, -1)), kMultiprocessors / 4);  // open to the right
}

TEST(LaunchPlan, has_the_schedule_and_the_splits_that_options_ask_for) {
  const Mask mask = Mask::causal();
  const std::pair<pagoda::Schedule, kernels::Schedule> kSchedules[] = {
      {pagoda::Schedule::kTransient, kernels::Schedule::kTransient},
      {pagoda::Schedule::kPersistent, kernels::Schedule::kPersistent},
      {pagoda::Schedule::kQueue, kernels::Schedule::kQueue},
      {pagoda::Schedule::kStreamK, kernels::Schedule::kStreamK}};
  for (const auto& [asked, planned] : kSchedules) {
    const auto plan = make_plan(kShapes[1], chunk(mask), kMultiprocessors, {.schedule = asked});
    ASSERT_EQ(plan->num_launches, 1);
    EXPECT_EQ(plan->launches[0].schedule, planned);
  }
  for (const int32_t splits : {1, 2, 7}) {
    const auto plan = make_plan(kShapes[1], chunk(mask), kMultiprocessors,
                                {.schedule = pagoda::Schedule::kQueue, .num_kv_splits = splits});
    EXPECT_EQ(plan->launches[0].num_splits, splits);
    EXPECT_EQ(plan->num_split_rows > 0, splits > 1);
  }
}

}  // namespace
}  // namespace pagoda::mha_sm100
