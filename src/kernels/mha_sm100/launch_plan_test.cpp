// Schedules and KV splits, planned without reading a length.
#include "kernels/mha_sm100/launch_plan.hpp"

#include <cstdint>
#include <gtest/gtest.h>
#include <string>
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
  const int32_t ctas = 4 * num_splits(Mask::causal());
  EXPECT_LE(ctas, kMultiprocessors);
  EXPECT_GE(ctas, kMultiprocessors / 2);  // each split more is one more partial result to merge
}

TEST(LaunchPlan, short_caches_have_parts_of_four_tiles_at_least) {
  EXPECT_EQ(num_splits(Mask::causal(), 3 * 4 * 128), 3);
  EXPECT_EQ(num_splits(Mask::causal(), 100), 1);
}

TEST(LaunchPlan, splits_are_sized_by_visible_keys) {
  EXPECT_EQ(num_splits(Mask::window(127, 0)), 1);   // 191 keys: two tiles
  EXPECT_EQ(num_splits(Mask::window(2047, 0)), 3);  // 2111: 17 tiles
  EXPECT_EQ(num_splits(Mask::window(2047, 0) & Mask::causal()), 3);
  EXPECT_EQ(num_splits(Mask::chunked(1024) & Mask::causal()), 4);  // two chunks: 16 tiles
  EXPECT_EQ(num_splits(Mask::window(2047, -1)), num_splits(Mask::causal()));  // open to the right
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

// The shapes of one CTA and of a pair.
constexpr Shape kOne = kShapes[1];
constexpr Shape kPairShape = kShapes[6];
static_assert(kOne.ctas == 1 && kPairShape.ctas == 2 && kOne.dtype == kPairShape.dtype);

// Whether CTA pairs serve it; never both or neither.
bool takes_pairs(const core::Problem& p, const Options& options = {}) {
  const bool one = !is_ranked_lower(kOne, p, kMultiprocessors, options, nullptr);
  const bool pair = !is_ranked_lower(kPairShape, p, kMultiprocessors, options, nullptr);
  EXPECT_NE(one, pair);
  return pair;
}
std::string why_no_pairs(const core::Problem& p, const Options& options = {}) {
  std::string reason;
  EXPECT_TRUE(is_ranked_lower(kPairShape, p, kMultiprocessors, options, &reason));
  return reason;
}

alignas(16) constexpr int32_t kNeverRead = 0;  // Q, K and V: the plan follows from shapes

// Padded prefill, 4 query heads on one KV head: a pair's tile has 128 tokens.
core::Problem prefill(const Mask& mask, int32_t batch, int32_t tokens) {
  core::Problem p = chunk(mask, tokens);
  p.is_ragged = false;
  p.batch = batch;
  p.max_seqlen_q = p.max_seqlen_kv = tokens;
  for (core::KVView* view : {&p.k, &p.v}) {
    view->data = &kNeverRead;
    view->head_stride = 128;
    view->row_stride = 128;
    view->outer_stride = int64_t{128} * tokens;
  }
  return p;
}

TEST(LaunchPlan, pairs_serve_rows_that_see_all_keys_in_tiles_that_fill_the_chip) {
  const Mask none = Mask::none();
  EXPECT_TRUE(takes_pairs(prefill(none, 74, 128)));
  EXPECT_FALSE(takes_pairs(prefill(none, 73, 128)));
  EXPECT_EQ(why_no_pairs(prefill(none, 73, 128)),
            "one CTA serves it: 73 tiles of a pair's rows for 74 pairs of multiprocessors");
}

TEST(LaunchPlan, one_cta_serves_what_a_pair_would_wait_for) {
  const Mask none = Mask::none(), causal = Mask::causal(), window = Mask::window(5, 5);
  const core::Problem full = prefill(none, 74, 128);
  EXPECT_FALSE(takes_pairs(prefill(causal, 74, 128)));
  EXPECT_FALSE(takes_pairs(prefill(window, 74, 128)));
  EXPECT_FALSE(takes_pairs(prefill(none, 74, 64)));  // one CTA's rows
  EXPECT_FALSE(takes_pairs(full, {.is_batch_invariant = true}));
  core::Problem ragged = full;
  ragged.is_ragged = true;
  ragged.total_q = 74 * 128;
  EXPECT_FALSE(takes_pairs(ragged));
  core::Problem gathered = full;
  gathered.k.dtype = gathered.v.dtype = DType::kF8E4M3;
  EXPECT_FALSE(takes_pairs(gathered));
  EXPECT_EQ(why_no_pairs(gathered), "one CTA serves it: TMA can't load K and V");
}

TEST(LaunchPlan, pairs_split_keys_and_partition_decode) {
  const Mask mask = Mask::causal();
  const auto split = make_plan(kPairShape, chunk(mask), kMultiprocessors, {.num_kv_splits = 7});
  EXPECT_EQ(split->launches[0].schedule, kernels::Schedule::kQueue);
  EXPECT_EQ(split->launches[0].num_splits, 7);
  EXPECT_GT(split->num_split_rows, 0);
  core::Problem decode = chunk(mask);
  decode.total_q = decode.max_seqlen_q = 1;
  const auto plan = make_plan(kPairShape, decode, kMultiprocessors, {});
  EXPECT_EQ(plan->launches[0].schedule, kernels::Schedule::kStreamK);
  EXPECT_EQ(plan->launches[0].ctas, kMultiprocessors);
}

// Decode reads each key once. Four work tiles of a chunk, or head tiles of a wide group, read the
// same keys.
TEST(LaunchPlan, keys_that_are_read_once_are_evicted_first_and_shared_ones_last) {
  const Mask mask = Mask::causal();
  const auto policy = [&](int32_t tokens, int32_t group) {
    core::Problem p = chunk(mask);
    p.total_q = p.max_seqlen_q = tokens;
    p.num_q_heads = p.group = group;
    const auto plan = make_plan(kShapes[1], p, kMultiprocessors, {});
    const Launch& launch = plan->launches[plan->num_launches - 1];  // of the longest sequences
    return make_arguments(*plan, launch, p, {}).arguments.kv_eviction;
  };
  EXPECT_EQ(policy(1, 4), arch::Eviction::kFirst);
  EXPECT_EQ(policy(64, 4), arch::Eviction::kFirst);  // 256 rows: one work tile
  EXPECT_EQ(policy(64, 16), arch::Eviction::kLast);  // 1024 rows: four
  EXPECT_EQ(policy(1, 256), arch::Eviction::kLast);  // two head tiles
  EXPECT_EQ(policy(65, 1), arch::Eviction::kFirst);  // a short chunk of one head
  EXPECT_EQ(policy(257, 1), arch::Eviction::kLast);
}

}  // namespace
}  // namespace pagoda::mha_sm100
