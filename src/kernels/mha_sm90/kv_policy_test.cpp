// The L2 policy with which the launches of a Hopper call read K and V.
#include <cstdint>
#include <gtest/gtest.h>

#include "kernels/mha_sm90/instances.hpp"
#include "kernels/mha_sm90/launch_plan.hpp"
#include "pagoda/mask.hpp"

namespace pagoda::mha_sm90 {
namespace {

constexpr int32_t kMultiprocessors = 132;

// 100 sequences of up to `tokens` query tokens, one KV head, a long dense cache. The lengths
// are on the device.
core::Problem problem(const Mask& mask, int32_t tokens, int32_t group) {
  core::Problem p;
  p.batch = 100;
  p.num_q_heads = p.group = group;
  p.num_kv_heads = 1;
  p.head_dim_qk = p.head_dim_vo = 128;
  p.is_ragged = true;
  p.has_host_lengths = false;
  p.max_seqlen_q = tokens;
  p.total_q = (p.batch - 1) * tokens + 1;  // there may be sequences of one token
  p.max_seqlen_kv = p.max_seqlen_kv_bound = 100'000;
  p.q.dtype = p.k.dtype = p.v.dtype = p.out.dtype = DType::kBF16;
  p.q.row_stride = p.out.row_stride = int64_t{128} * group;
  p.q.head_stride = p.out.head_stride = 128;
  p.k.row_stride = p.v.row_stride = p.k.head_stride = p.v.head_stride = 128;
  p.k.outer_stride = p.v.outer_stride = 128 * 100'000;
  p.mask = mask.nodes();
  return p;
}

arch::Eviction policy(int32_t tokens, int32_t group, RowKind rows, const Options& options = {}) {
  const Mask mask = Mask::causal();
  const core::Problem p = problem(mask, tokens, group);
  const auto plan = make_plan(kShapes[2], p, kMultiprocessors, options);
  for (int32_t i = 0; i < plan->num_launches; ++i) {
    if (plan->launches[i].rows != rows) continue;
    return make_arguments(*plan, plan->launches[i], p, {}).arguments.kv_eviction;
  }
  ADD_FAILURE() << "no such launch";
  return {};
}

// With which few rows are packed instead of row tiles of tokens.
Options invariant() {
  Options options;
  options.is_batch_invariant = true;
  return options;
}

TEST(KVPolicy, keys_that_one_row_tile_reads_have_the_policy_that_was_measured) {
  EXPECT_EQ(policy(1, 4, RowKind::kPacked), arch::Eviction::kNormal);
  EXPECT_EQ(policy(16, 4, RowKind::kPacked, invariant()), arch::Eviction::kNormal);  // 64 rows
}

TEST(KVPolicy, keys_that_several_row_tiles_read_are_evicted_last) {
  // Two head tiles.
  EXPECT_EQ(policy(1, 128, RowKind::kPacked, invariant()), arch::Eviction::kLast);
}

TEST(KVPolicy, row_tiles_of_tokens_have_the_policy_that_was_measured) {
  EXPECT_EQ(policy(1000, 4, RowKind::kTallTokens), arch::Eviction::kNormal);
  // The launch of the short sequences of the same call.
  EXPECT_EQ(policy(1000, 8, RowKind::kPacked), arch::Eviction::kLast);    // 16 tokens: two tiles
  EXPECT_EQ(policy(1000, 4, RowKind::kPacked), arch::Eviction::kNormal);  // at most 64 rows
}

}  // namespace
}  // namespace pagoda::mha_sm90
