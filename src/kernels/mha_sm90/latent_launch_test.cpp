// Which calls of latent attention have kernels of their own, and their CTAs on an H200.
#include <algorithm>
#include <cstdint>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "core/int_math.hpp"
#include "kernels/mha_sm90/launch_plan.hpp"
#include "pagoda/mask.hpp"

namespace pagoda::mha_sm90 {
namespace {

constexpr int32_t kMultiprocessors = 132;

struct Call {
  int32_t batch, keys, q_heads = 128, tokens = 1;
};

// bf16, pages of 64 keys, lengths on the device; K and V are views of one tensor.
core::Problem problem_of(const Call& call) {
  static const int32_t table = 0;
  alignas(16) static const uint16_t cache[8] = {};
  static const Mask mask = Mask::causal();
  core::Problem p;
  p.batch = call.batch;
  p.num_q_heads = p.group = call.q_heads;
  p.num_kv_heads = 1;
  p.head_dim_qk = 576;
  p.head_dim_vo = 512;
  p.has_host_lengths = false;
  p.max_seqlen_q = p.max_seqlen_q_bound = call.tokens;
  p.total_q = int64_t{call.batch} * call.tokens;
  p.max_seqlen_kv = p.max_seqlen_kv_bound = call.keys;
  p.kv_kind = core::KVKind::kPaged;
  p.page_size = 64;
  p.num_pages = int64_t{call.batch} * core::ceil_div(call.keys, 64);
  p.block_table.data = &table;
  p.block_table.row_stride = core::ceil_div(call.keys, 64);
  p.q.dtype = p.k.dtype = p.v.dtype = p.out.dtype = DType::kBF16;
  p.q.head_stride = p.k.head_stride = p.v.head_stride = 576;
  p.q.row_stride = int64_t{576} * call.q_heads;
  p.q.sequence_stride = p.q.row_stride * call.tokens;
  p.out.head_stride = 512;
  p.out.row_stride = int64_t{512} * call.q_heads;
  p.out.sequence_stride = p.out.row_stride * call.tokens;
  p.k.data = p.v.data = cache;
  p.k.row_stride = p.v.row_stride = 576;
  p.k.outer_stride = p.v.outer_stride = 64 * 576;
  p.mask = mask.nodes();
  return p;
}

const Shape& latent_shape() {
  return *std::ranges::find_if(kShapes, [](const Shape& shape) { return is_latent(shape); });
}

// Empty: it is served.
std::string refusal(const core::Problem& p, const Options& options = {}) {
  std::string reason;
  const core::Fit fit = mha_sm90::fit(latent_shape(), p, options, &reason);
  EXPECT_EQ(fit == core::Fit::kServes, reason.empty()) << reason;
  return reason;
}

Launch launch_of(const Call& call, const Options& options = {}) {
  const auto plan = make_plan(latent_shape(), problem_of(call), kMultiprocessors, options);
  EXPECT_EQ(plan->num_launches, 1);
  EXPECT_LE(plan->workspace_bytes, int64_t{128} << 20);
  return plan->launches[0];
}

TEST(LatentLaunch, serves_v_in_the_first_columns_of_k) {
  EXPECT_EQ(refusal(problem_of({64, 4096})), "");
  core::Problem p = problem_of({64, 4096});
  p.head_dim_qk = 320;
  p.head_dim_vo = 256;
  EXPECT_EQ(refusal(p), "");

  p = problem_of({64, 4096});
  static const uint16_t other[8] = {};
  p.v.data = other;
  EXPECT_NE(refusal(p).find("V in the first columns of K"), std::string::npos);
  p = problem_of({64, 4096});
  p.v.row_stride = 1152;
  EXPECT_NE(refusal(p).find("V in the first columns of K"), std::string::npos);
}

TEST(LatentLaunch, other_calls_are_left_to_other_kernels) {
  core::Problem p = problem_of({64, 4096});
  p.head_dim_qk = p.head_dim_vo = 256;
  EXPECT_NE(refusal(p).find("these are for larger ones"), std::string::npos);
  p = problem_of({64, 4096});
  p.k.dtype = p.v.dtype = DType::kF8E4M3;
  EXPECT_NE(refusal(p).find("not of the queries' type"), std::string::npos);
  p = problem_of({64, 4096});
  p.score_mod.softcap = 30;
  EXPECT_NE(refusal(p).find("no soft cap"), std::string::npos);
  p = problem_of({64, 4096});
  p.page_size = 4;
  EXPECT_NE(refusal(p).find("TMA"), std::string::npos);
  EXPECT_NE(refusal(problem_of({64, 4096}), {.num_kv_splits = 4}).find("split"), std::string::npos);
  EXPECT_NE(refusal(problem_of({64, 4096}), {.schedule = Schedule::kQueue}), "");
  EXPECT_EQ(refusal(problem_of({64, 4096}), {.schedule = Schedule::kStreamK}), "");
}

// The head tiles of a row tile have neighbouring CTAs.
TEST(LatentLaunch, as_many_ctas_for_each_head_tile) {
  for (const int32_t heads : {1, 16, 64, 65, 96, 128, 256}) {
    const int32_t head_tiles = core::ceil_div(heads, 64);
    for (const int32_t batch : {1, 7, 64, 200}) {
      const Launch launch = launch_of({batch, 4096, heads});
      EXPECT_EQ(launch.ctas % head_tiles, 0) << heads << " heads";
      EXPECT_LE(launch.ctas, kMultiprocessors);
      EXPECT_EQ(launch.heads, std::min(heads, 64));
    }
  }
}

// The row tiles of all tokens have, too, where splits have no CTA each and few CTAs are left over.
TEST(LatentLaunch, row_tiles_of_a_sequence_side_by_side) {
  EXPECT_EQ(launch_of({45, 5724, 64, 2}).side_by_side, 2);
  EXPECT_EQ(launch_of({45, 5724, 128, 3}).side_by_side, 6);
  EXPECT_EQ(launch_of({100, 2000, 16, 10}).side_by_side, 3);  // of four tokens, four and two
  // 20 side by side would leave twelve CTAs: head tiles alone.
  EXPECT_EQ(launch_of({100, 2000, 128, 10}).side_by_side, 2);
  EXPECT_EQ(launch_of({100, 2000, 128, 10}).ctas, kMultiprocessors);
  EXPECT_EQ(launch_of({9, 5786, 64, 2}).side_by_side, 1);  // a CTA for each split
  EXPECT_EQ(launch_of({9, 5786, 128, 2}).side_by_side, 2);
  core::Problem p = problem_of({45, 5724, 64, 2});
  static const int32_t starts = 0;
  p.is_ragged = true;
  p.cu_seqlens_q = {&starts, 1};
  const auto side_by_side = [&p] {
    return make_plan(latent_shape(), p, kMultiprocessors, {})->launches[0].side_by_side;
  };
  EXPECT_EQ(side_by_side(), 2);
  p.total_q -= 1;  // one sequence has fewer tokens
  EXPECT_EQ(side_by_side(), 1);
}

TEST(LatentLaunch, a_split_has_one_kv_tile_to_four) {
  EXPECT_EQ(launch_of({1, 512}).ctas, 2 * 9);  // of nine KV tiles, as the last may begin late
  EXPECT_EQ(launch_of({1, 1024}).ctas, 2 * 17);
  EXPECT_EQ(launch_of({1, 1088}).ctas, 2 * 9);  // of two
  EXPECT_EQ(launch_of({1, 4096}).ctas, 2 * 33);
  EXPECT_EQ(launch_of({1, 8192}).ctas, 2 * 33);
}

kernels::AttentionArguments arguments_of(const core::Problem& p, const Options& options = {}) {
  const auto plan = make_plan(latent_shape(), p, kMultiprocessors, options);
  std::vector<std::byte> workspace(static_cast<size_t>(plan->workspace_bytes));
  return make_arguments(*plan, plan->launches[0], p, workspace).arguments;
}

TEST(LatentLaunch, one_warp_finds_the_work_tiles_of_plain_calls) {
  EXPECT_EQ(arguments_of(problem_of({1, 8192})).ctas_per_kv_head, 33);
  EXPECT_EQ(arguments_of(problem_of({64, 4096, 16, 2})).ctas_per_kv_head, kMultiprocessors);
  EXPECT_EQ(arguments_of(problem_of({45, 5724, 64, 2})).ctas_per_kv_head, 66);
  EXPECT_EQ(arguments_of(problem_of({45, 5724, 64, 2})).decode.token_tiles, 2);
  core::Problem p = problem_of({1, 8192});
  static const Mask window = Mask::window(1000, 0);
  p.mask = window.nodes();
  EXPECT_EQ(arguments_of(p).ctas_per_kv_head, 0);
  EXPECT_EQ(arguments_of(problem_of({1, 8192}), {.is_batch_invariant = true}).ctas_per_kv_head, 0);
  p = problem_of({1, 8192});
  static const int32_t position = 8191;
  p.cache_lengths = {&position, 1};
  EXPECT_EQ(arguments_of(p).ctas_per_kv_head, 0);
}

TEST(LatentLaunch, few_row_tiles_are_split_and_merged_by_all_their_ctas) {
  EXPECT_TRUE(launch_of({1, 8192}).shares_merge);
  EXPECT_TRUE(launch_of({33, 4096}).shares_merge);
  EXPECT_FALSE(launch_of({34, 4096}).shares_merge);  // of 66 intervals
  EXPECT_TRUE(launch_of({66, 4096, 16}).shares_merge);
  EXPECT_FALSE(launch_of({67, 4096, 16}).shares_merge);
  EXPECT_FALSE(launch_of({17, 4096, 128, 2}).shares_merge);  // two row tiles of a sequence
  EXPECT_FALSE(launch_of({1, 8192}, {.is_batch_invariant = true}).shares_merge);
}

}  // namespace
}  // namespace pagoda::mha_sm90
