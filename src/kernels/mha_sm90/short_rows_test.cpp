// Which calls of few query rows are packed, and which are row tiles of tokens.
#include <cstdint>
#include <gtest/gtest.h>
#include <memory>
#include <vector>

#include "kernels/mha_sm90/instances.hpp"
#include "kernels/mha_sm90/launch_plan.hpp"
#include "kernels/mha_sm90/plan_test_problem.hpp"

namespace pagoda::mha_sm90 {
namespace {

constexpr int32_t kMultiprocessors = 132;

// `batch` chunks of up to `tokens` tokens over a long dense cache, 32/8 heads of 128; `missing`:
// tokens fewer than if all had as many.
std::unique_ptr<LaunchPlan> plan_of(int32_t batch, int32_t tokens, DType cache = DType::kBF16,
                                    const Options& options = {}, int32_t missing = 0) {
  core::Problem p = dense_problem(batch, tokens, 32'768, cache);
  static const std::vector<int32_t> kCuRows(65);  // never read: lengths are on the device
  p.is_ragged = true;
  p.cu_seqlens_q = kCuRows;
  p.total_q -= missing;
  return make_plan(kShapes[2], p, kMultiprocessors, options);
}

// The launch that serves those of `tokens` tokens.
Launch launch_of(int32_t batch, int32_t tokens, DType cache = DType::kBF16,
                 const Options& options = {}) {
  const auto plan = plan_of(batch, tokens, cache, options);
  return plan->launches[plan->num_launches - 1];
}

TEST(ShortRows, chunks_of_few_sequences_are_tokens_from_17_rows_on) {
  EXPECT_EQ(launch_of(1, 16).rows, RowKind::kPacked);
  EXPECT_EQ(launch_of(1, 17).rows, RowKind::kTokens);
  EXPECT_EQ(launch_of(1, 64).rows, RowKind::kTokens);
  EXPECT_GT(launch_of(1, 64).num_splits, 1);
}

TEST(ShortRows, over_an_fp8_cache_from_33_rows_on) {
  EXPECT_EQ(launch_of(1, 32, DType::kF8E4M3).load, LoadKind::kGather);
  EXPECT_EQ(launch_of(1, 33, DType::kF8E4M3).load, LoadKind::kTmaWiden);
  EXPECT_EQ(launch_of(1, 33, DType::kF8E4M3).rows, RowKind::kTokens);
}

TEST(ShortRows, many_row_tiles_stay_packed) {
  EXPECT_EQ(launch_of(3, 64).rows, RowKind::kPacked);  // 96 row tiles for 132 multiprocessors
  EXPECT_EQ(launch_of(3, 65).rows, RowKind::kTokens);
}

// An empty launch of packed rows takes 5 us.
TEST(ShortRows, have_no_launch_where_total_q_leaves_none_for_them) {
  const auto equal = plan_of(4, 512);
  ASSERT_EQ(equal->num_launches, 1);
  EXPECT_EQ(equal->launches[0].rows, RowKind::kTokens);
  EXPECT_EQ(equal->launches[0].min_rows, 1);  // a graph may be replayed with shorter ones
  EXPECT_EQ(plan_of(4, 512, DType::kBF16, {}, 512 - 65)->num_launches, 1);
  EXPECT_EQ(plan_of(4, 512, DType::kBF16, {}, 512 - 64)->num_launches, 2);
  EXPECT_EQ(plan_of(1, 512, DType::kBF16, {}, 1)->num_launches, 1);
}

TEST(ShortRows, of_equal_lengths_have_a_launch_where_the_batch_must_be_invariant) {
  Options options;
  options.is_batch_invariant = true;
  EXPECT_EQ(plan_of(4, 512, DType::kBF16, options)->num_launches, 2);
}

TEST(ShortRows, do_not_depend_on_the_batch_where_it_must_be_invariant) {
  Options options;
  options.is_batch_invariant = true;
  EXPECT_EQ(launch_of(1, 64, DType::kBF16, options).rows, RowKind::kPacked);
}

}  // namespace
}  // namespace pagoda::mha_sm90
