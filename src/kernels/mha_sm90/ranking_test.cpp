// Which calls mha_sm90 leaves to the kernels on cp.async: those that were slower here on an H200
// (README.md).
#include <cstdint>
#include <gtest/gtest.h>
#include <string>

#include "kernels/mha_sm90/instances.hpp"
#include "kernels/mha_sm90/launch_plan.hpp"
#include "pagoda/mask.hpp"

namespace pagoda::mha_sm90 {
namespace {

constexpr int32_t kMultiprocessors = 132;

struct Call {
  int32_t batch, tokens, keys;
  int32_t head_dim = 128;
  float softcap = 0;
  DType cache = DType::kBF16;
};

// `batch` sequences of `tokens` tokens over a dense cache of `keys` keys, 32/8 heads.
core::Problem problem(const Call& call, const Mask& mask) {
  core::Problem p;
  p.batch = call.batch;
  p.num_q_heads = 32;
  p.num_kv_heads = 8;
  p.group = 4;
  p.head_dim_qk = p.head_dim_vo = call.head_dim;
  p.has_host_lengths = false;
  p.max_seqlen_q = p.max_seqlen_q_bound = call.tokens;
  p.total_q = call.batch * call.tokens;
  p.max_seqlen_kv = p.max_seqlen_kv_bound = call.keys;
  p.score_mod.softcap = call.softcap;
  p.q.dtype = p.out.dtype = DType::kBF16;
  p.k.dtype = p.v.dtype = call.cache;
  p.q.head_stride = p.out.head_stride = p.k.head_stride = p.v.head_stride = call.head_dim;
  p.q.row_stride = p.out.row_stride = 32 * call.head_dim;
  p.q.sequence_stride = p.out.sequence_stride = p.q.row_stride * call.tokens;
  p.k.row_stride = p.v.row_stride = 8 * call.head_dim;
  p.k.outer_stride = p.v.outer_stride = int64_t{8} * call.head_dim * call.keys;
  p.mask = mask.nodes();
  return p;
}

bool is_left_to_cp_async(const Call& call, const Options& options = {}) {
  const Mask mask = Mask::causal();
  std::string reason;
  const bool result = is_ranked_lower(problem(call, mask), kMultiprocessors, options, &reason);
  EXPECT_EQ(result, !reason.empty());
  return result;
}

TEST(Ranking, one_token_is_decoded_by_cp_async) {
  for (const int32_t batch : {1, 16, 32, 48, 64, 128, 200, 1000}) {
    EXPECT_TRUE(is_left_to_cp_async({batch, 1, 1024})) << batch;
    EXPECT_TRUE(is_left_to_cp_async({batch, 1, 131'072})) << batch;
    EXPECT_TRUE(is_left_to_cp_async({batch, 1, 131'072, 64})) << batch;
  }
  EXPECT_TRUE(is_left_to_cp_async({40, 1, 1024}));
  EXPECT_FALSE(is_left_to_cp_async({40, 1, 4096}));       // would need KV splits
  EXPECT_FALSE(is_left_to_cp_async({1001, 1, 131'072}));  // too much workspace
  EXPECT_FALSE(is_left_to_cp_async({64, 1, 4096, 256}));
  EXPECT_FALSE(is_left_to_cp_async({64, 1, 4096, 128, 0, DType::kF8E4M3}));
}

TEST(Ranking, a_few_tokens_by_bytes_and_row_tiles) {
  EXPECT_TRUE(is_left_to_cp_async({1, 4, 131'072}));   // 512 MiB
  EXPECT_FALSE(is_left_to_cp_async({1, 4, 131'200}));  // more, for 8 row tiles
  EXPECT_FALSE(is_left_to_cp_async({16, 4, 4096}));    // a row tile a multiprocessor
  EXPECT_TRUE(is_left_to_cp_async({15, 4, 4096}));     // fewer
  EXPECT_TRUE(is_left_to_cp_async({64, 4, 4096}));     // 1 GiB, for 512 row tiles
  EXPECT_FALSE(is_left_to_cp_async({64, 5, 4096}));    // 20 rows
  EXPECT_FALSE(is_left_to_cp_async({64, 64, 1024}));
}

TEST(Ranking, score_mods_by_bytes) {
  EXPECT_TRUE(is_left_to_cp_async({16, 1, 4096, 128, 30}));
  EXPECT_FALSE(is_left_to_cp_async({64, 1, 4096, 128, 30}));
}

TEST(Ranking, a_batch_invariant_call_is_never_ranked_by_its_batch) {
  Options options;
  options.is_batch_invariant = true;
  EXPECT_FALSE(is_left_to_cp_async({1, 1, 1024}, options));
}

// As many packed row tiles as multiprocessors need no split; one CTA each then.
TEST(Ranking, row_tiles_as_many_as_multiprocessors_get_a_cta_each) {
  const Mask mask = Mask::causal();
  const auto ctas = [&](int32_t batch, DType cache) {
    const Call call{.batch = batch, .tokens = 4, .keys = 8192, .cache = cache};
    return make_plan(kShapes[2], problem(call, mask), kMultiprocessors, {})->launches[0].ctas;
  };
  EXPECT_EQ(ctas(16, DType::kBF16), kMultiprocessors);  // 128 row tiles
  EXPECT_EQ(ctas(15, DType::kBF16), 2 * kMultiprocessors);
  EXPECT_EQ(ctas(17, DType::kBF16), 2 * kMultiprocessors);
  EXPECT_EQ(ctas(16, DType::kF8E4M3), 2 * kMultiprocessors);  // half the bytes in flight
}

}  // namespace
}  // namespace pagoda::mha_sm90
