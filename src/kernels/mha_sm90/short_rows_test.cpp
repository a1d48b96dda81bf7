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

// `batch` chunks of up to `tokens` tokens over a dense cache, 32 query heads.
struct Call {
  int32_t batch, tokens;
  DType cache = DType::kBF16;
  Options options{};
  int32_t missing = 0;  // tokens fewer than if all chunks had as many
  int32_t dim = 128;
  float softcap = 0;
  int32_t keys = 2048;
  int32_t group = 4;
};

std::unique_ptr<LaunchPlan> plan_of(const Call& call) {
  core::Problem p = dense_problem(call.batch, call.tokens, call.keys, call.cache, call.dim);
  static const std::vector<int32_t> kCuRows(65);  // never read: lengths are on the device
  p.is_ragged = true;
  p.cu_seqlens_q = kCuRows;
  p.total_q -= call.missing;
  p.num_kv_heads = p.num_q_heads / call.group;
  p.group = call.group;
  p.score_mod.softcap = call.softcap;
  const Shape* shape = kShapes;
  while (shape->depth_qk != call.dim || shape->dtype != DType::kBF16) ++shape;
  return make_plan(*shape, p, kMultiprocessors, call.options);
}

// total_q counts padding rows only.
TEST(ShortRows, a_batch_of_no_sequence_has_no_launch) {
  for (const int32_t rows : {4, 20, 64, 700}) {
    core::Problem p = dense_problem(1, rows, 2048, DType::kBF16, 128);
    static const std::vector<int32_t> kCuRows(1);
    p.batch = 0;
    p.is_ragged = true;
    p.cu_seqlens_q = kCuRows;
    p.kv_kind = core::KVKind::kPaged;
    EXPECT_EQ(make_plan(kShapes[2], p, kMultiprocessors, {})->num_launches, 0) << rows;
  }
}

// The launch that serves those of `tokens` tokens.
Launch launch_of(const Call& call) {
  const auto plan = plan_of(call);
  return plan->launches[plan->num_launches - 1];
}

bool is_mixed(const Call& call) { return plan_of(call)->launches[0].is_mixed(); }

// One packed row tile of a KV head is split among many multiprocessors, and merged row by row.
TEST(ShortRows, of_few_sequences_are_tokens_from_more_than_16_packed_rows_on) {
  for (const int32_t dim : {64, 128, 256}) {
    if (dim < 256) {
      EXPECT_EQ(launch_of({.batch = 1, .tokens = 4, .dim = dim}).rows, RowKind::kPacked) << dim;
    }
    for (const int32_t tokens : {5, 16, 24, 64}) {
      EXPECT_NE(launch_of({.batch = 1, .tokens = tokens, .dim = dim}).rows, RowKind::kPacked)
          << dim;
    }
    EXPECT_NE(launch_of({.batch = 4, .tokens = 64, .dim = dim}).rows, RowKind::kPacked) << dim;
  }
  EXPECT_GT(launch_of({.batch = 1, .tokens = 64}).num_splits, 1);
}

// 32 x 8 tokens, 16/2 heads: 69.0 us in packed rows, 43.6.
TEST(ShortRows, of_many_sequences_are_row_tiles_of_several_heads) {
  for (const int32_t dim : {64, 128, 256}) {
    for (const int32_t tokens : {8, 16, 24}) {
      const Launch launch = launch_of({.batch = 16, .tokens = tokens, .dim = dim});
      EXPECT_NE(launch.rows, RowKind::kPacked) << dim;
      EXPECT_GT(launch.heads, 1) << dim;
    }
  }
  EXPECT_EQ(launch_of({.batch = 16, .tokens = 4, .dim = 64}).rows, RowKind::kPacked);
  EXPECT_EQ(launch_of({.batch = 16, .tokens = 4}).rows, RowKind::kPacked);
}

// Of 32/8 heads of head dim 128, or others.
Launch e4m3_launch_of(int32_t batch, int32_t tokens, int32_t keys,
                      const core::HeadScales& q_scales = {}, const Options& options = {},
                      int32_t head_dim = 128, int32_t q_heads = 32, int32_t kv_heads = 8) {
  core::Problem p = dense_problem(batch, tokens, keys, DType::kF8E4M3, head_dim);
  p.num_q_heads = q_heads;
  p.num_kv_heads = kv_heads;
  p.group = q_heads / kv_heads;
  p.q.dtype = DType::kF8E4M3;
  p.q_scales = q_scales;
  const Shape* shape = kShapes;
  while (shape->depth_qk != head_dim || shape->dtype != DType::kF8E4M3) ++shape;
  return make_plan(*shape, p, kMultiprocessors, options)->launches[0];
}

Launch wide_launch_of(int32_t batch, int32_t tokens, int32_t keys, float softcap = 0) {
  core::Problem p = dense_problem(batch, tokens, keys, DType::kBF16, 256);
  p.score_mod.softcap = softcap;
  const Shape* shape = kShapes;
  while (shape->depth_qk != 256 || shape->dtype != DType::kBF16) ++shape;
  return make_plan(*shape, p, kMultiprocessors, {})->launches[0];
}

// 16 x 1 token over 1,024 keys 66.1 us, 64.8; 4 x 1 over 512 22.0, 18.5; 6 x 4 over 700 39.6, 26.7.
TEST(ShortRows, of_head_dim_256_are_tokens) {
  EXPECT_NE(wide_launch_of(16, 1, 1024).rows, RowKind::kPacked);
  EXPECT_NE(wide_launch_of(4, 1, 512).rows, RowKind::kPacked);
  EXPECT_NE(wide_launch_of(6, 4, 700).rows, RowKind::kPacked);
  EXPECT_GT(wide_launch_of(6, 4, 700).heads, 1);
}

// us, packed, tokens, 32/8 heads: 1 x 4 over 2,000 keys 21.1, 15.8; 4 x 8 over 3,000 34.0, 28.3; 1
// x 16 over 4,000 43.5, 19.3; 1 x 32 over 8,000 52.3, 25.4; 4 x 48 over 3,000 59.4, 29.2. Those
// were tokens of one head; of several: 16 x 4 over 2,000 37.4, 32.4; 32 x 32 over 2,000 103.6,
// 69.4; 64 x 8 over 2,000 95.2, 83.1. But one token over many keys waits for them.
TEST(ShortRows, of_e4m3_queries_are_tokens_but_one_token_over_many_keys) {
  const auto rows = [](int32_t batch, int32_t tokens, int32_t keys, Options options = {}) {
    return e4m3_launch_of(batch, tokens, keys, {}, options).rows;
  };
  EXPECT_EQ(rows(1, 4, 2000), RowKind::kGroupTokens);
  EXPECT_EQ(rows(4, 8, 3000), RowKind::kGroupTokens);
  EXPECT_EQ(rows(1, 16, 4000), RowKind::kGroupTokens);
  EXPECT_EQ(rows(1, 32, 8000), RowKind::kGroupTokens);
  EXPECT_EQ(rows(4, 48, 3000), RowKind::kGroupTokens);
  EXPECT_EQ(rows(16, 4, 2000), RowKind::kGroupTokens);
  EXPECT_EQ(rows(32, 32, 2000), RowKind::kGroupTokens);
  EXPECT_EQ(rows(4, 1, 1000), RowKind::kGroupTokens);
  EXPECT_EQ(rows(64, 8, 3000), RowKind::kGroupTokens);
  EXPECT_EQ(rows(44, 1, 1587), RowKind::kPacked);
  EXPECT_EQ(rows(1, 16, 4000, {.is_batch_invariant = true}), RowKind::kPacked);
  EXPECT_EQ(rows(4, 65, 3000), RowKind::kTokens);
  EXPECT_EQ(rows(8, 65, 3000), RowKind::kGroupTokens);
}

// us, with row tiles of one consumer, two, three: 58 x 29 over 696 keys of 48/8 heads of 64 76.7,
// 70.4, 52.1; 35 x 31 over 7,442 of 24/8 188, 136, 160.
TEST(ShortRows, of_e4m3_queries_of_head_dim_64_have_two_consumers_or_three) {
  const auto launch = [](int32_t batch, int32_t tokens, int32_t keys, int32_t q_heads) {
    return e4m3_launch_of(batch, tokens, keys, {}, {}, 64, q_heads);
  };
  EXPECT_EQ(launch(58, 29, 696, 48).rows, RowKind::kTallTokens);
  EXPECT_EQ(launch(58, 29, 696, 48).heads, 6);
  EXPECT_EQ(launch(35, 31, 7442, 24).rows, RowKind::kGroupTokens);
  EXPECT_EQ(launch(35, 31, 7442, 24).heads, 3);
}

// Two consumers of 256 columns with several heads would spill.
TEST(ShortRows, of_e4m3_queries_of_head_dim_256_have_several_heads_up_to_64_tokens) {
  EXPECT_EQ(e4m3_launch_of(32, 24, 3000, {}, {}, 256).rows, RowKind::kGroupTokens);
  EXPECT_GT(e4m3_launch_of(32, 24, 3000, {}, {}, 256).heads, 1);
  EXPECT_EQ(e4m3_launch_of(4, 65, 3000, {}, {}, 256).rows, RowKind::kTokens);
}

// A row tile has one scale of Q.
TEST(ShortRows, of_e4m3_queries_have_several_heads_of_one_scale) {
  const float scale = 1;
  EXPECT_EQ(e4m3_launch_of(4, 8, 3000).heads, 4);
  EXPECT_EQ(e4m3_launch_of(4, 8, 3000, {.values = &scale, .group = 4}).heads, 4);
  const Launch launch = e4m3_launch_of(4, 8, 3000, {.values = &scale, .group = 1});
  EXPECT_EQ(launch.heads, 1);
  EXPECT_EQ(launch.rows, RowKind::kTokens);
  EXPECT_EQ(e4m3_launch_of(16, 4, 2000, {.values = &scale, .group = 1}).rows, RowKind::kPacked);
}

// 6 x 1 over 2,230 keys, 24 row tiles, 40.1 us, 42.4; 64 x 1 over 4,096 726, 760.
TEST(ShortRows, of_head_dim_256_are_packed_where_one_token_has_many_splits_or_keys) {
  EXPECT_EQ(wide_launch_of(3, 1, 2000).rows, RowKind::kPacked);
  EXPECT_NE(wide_launch_of(3, 1, 256).rows, RowKind::kPacked);
  EXPECT_EQ(wide_launch_of(64, 1, 4096).rows, RowKind::kPacked);
  EXPECT_EQ(wide_launch_of(16, 1, 1024, 30).rows, RowKind::kPacked);  // general scores
}

// 2 x 4 tokens of 8/1 heads over 23,453 keys, in 66 splits: 51.4 us, 25.6.
TEST(ShortRows, of_many_splits_take_longer_to_merge) {
  core::Problem p = dense_problem(2, 4, 23'453, DType::kBF16, 64);
  p.num_q_heads = p.group = 8;
  p.num_kv_heads = 1;
  const auto plan = make_plan(kShapes[0], p, kMultiprocessors, {});
  EXPECT_EQ(plan->launches[0].rows, RowKind::kSingleTokens);
  EXPECT_EQ(plan->launches[0].heads, 8);
}

// Packed rows would have general scores: 4 x 20 tokens over 8,192 keys 325 us, 55.
TEST(ShortRows, with_a_soft_cap_are_tokens) {
  const auto plan = plan_of({.batch = 16, .tokens = 8, .softcap = 30.0F});
  EXPECT_EQ(plan->launches[0].rows, RowKind::kTokens);
  EXPECT_EQ(plan->launches[0].scores, ScoreClass::kCapped);
  EXPECT_GT(plan->launches[0].heads, 1);
}

TEST(ShortRows, over_an_fp8_cache_are_widened_in_row_tiles_of_tokens) {
  for (const int32_t batch : {1, 17}) {
    EXPECT_EQ(launch_of({.batch = batch, .tokens = 4, .cache = DType::kF8E4M3}).rows,
              batch == 1 ? RowKind::kTokens : RowKind::kPacked);
    EXPECT_EQ(launch_of({.batch = batch, .tokens = 24, .cache = DType::kF8E4M3}).load,
              LoadKind::kTmaWiden);
  }
}

// us, packed, tokens, 32/8 heads: 1 x 1 over 8,000 keys 22.2, 18.0; 1 x 4 over 2,000 23.0, 14.2; 8
// x 4 over 2,000 31.8, 25.3; 16 x 1 over 1,000 25.6, 23.1; but 64 x 1 over 1,000 52.2, 62.3; 16 x 1
// over 4,000 52.8, 57.4; 1 x 1 over 64,000 56.5, 61.3. Head dim 256: 4 x 1 of 16/8 heads over 2,000
// 26.5, 29.1.
TEST(ShortRows, over_an_fp8_cache_of_few_bytes_are_tokens) {
  const auto rows = [](int32_t batch, int32_t tokens, int32_t keys, int32_t dim = 128) {
    const Launch launch = launch_of(
        {.batch = batch, .tokens = tokens, .cache = DType::kF8E4M3, .dim = dim, .keys = keys});
    return launch.load == LoadKind::kTmaWiden ? RowKind::kTokens : launch.rows;
  };
  for (const int32_t dim : {64, 128}) {
    EXPECT_EQ(rows(1, 1, 8000, dim), RowKind::kTokens);
    EXPECT_EQ(rows(1, 4, 2000, dim), RowKind::kTokens);
    EXPECT_EQ(rows(8, 4, 2000, dim), RowKind::kTokens);
    EXPECT_EQ(rows(16, 1, 1000, dim), RowKind::kTokens);
  }
  EXPECT_EQ(rows(64, 1, 1000), RowKind::kPacked);
  EXPECT_EQ(rows(16, 1, 4000), RowKind::kPacked);
  EXPECT_EQ(rows(1, 1, 64'000), RowKind::kPacked);
  EXPECT_EQ(rows(4, 1, 2000, 256), RowKind::kPacked);
}

// 60 tokens over 1k to 14k keys and 1988 over 8k: 980 us became 790 (H100).
TEST(ShortRows, beside_longer_ones_are_decoded_in_the_same_launch) {
  const auto plan = plan_of({.batch = 61, .tokens = 1988, .missing = 60 * 1987, .keys = 14'000});
  ASSERT_EQ(plan->num_launches, 1);
  const Launch& launch = plan->launches[0];
  EXPECT_TRUE(launch.is_mixed());
  EXPECT_EQ(launch.ctas, kMultiprocessors);
  EXPECT_EQ(launch.heads, 4);
  EXPECT_EQ(launch.max_rows, 16);  // of four heads: a block
  EXPECT_EQ(launch.min_rows, 17);
  EXPECT_EQ(launch.num_splits, 1);  // the kernel finds how many splits the prompts have
  // Little work.
  EXPECT_FALSE(is_mixed({.batch = 4, .tokens = 512, .missing = 900}));
  // Two slots a CTA of decoding, and three of prompts.
  EXPECT_EQ(plan->split.partial_bytes, int64_t{5} * kMultiprocessors * 128 * 128 * 4);
}

// Three tokens over 1k keys and a prompt of 100: 24.1 us became 19.4 (H100).
TEST(ShortRows, beside_few_longer_ones_are_row_tiles_of_tokens) {
  for (const int32_t dim : {64, 128, 256}) {
    const auto plan = plan_of({.batch = 4, .tokens = 100, .missing = 297, .dim = dim});
    ASSERT_EQ(plan->num_launches, 1) << dim;
    EXPECT_FALSE(plan->launches[0].is_mixed()) << dim;
    EXPECT_NE(plan->launches[0].rows, RowKind::kPacked) << dim;
    EXPECT_EQ(plan->launches[0].min_rows, 0) << dim;
  }
  EXPECT_FALSE(is_mixed({.batch = 4, .tokens = 301, .missing = 900}));
  EXPECT_FALSE(is_mixed({.batch = 16, .tokens = 100, .missing = 1485}));
  EXPECT_FALSE(is_mixed({.batch = 4, .tokens = 100, .missing = 297, .dim = 96}));
  EXPECT_TRUE(
      is_mixed({.batch = 61, .tokens = 1988, .missing = 60 * 1987, .dim = 96, .keys = 14'000}));
  Options invariant;
  invariant.is_batch_invariant = true;
  EXPECT_EQ(
      plan_of({.batch = 4, .tokens = 100, .options = invariant, .missing = 297})->num_launches, 2);
}

// 60 tokens over 1k to 14k keys and 1,988 over 8k: 674 us, as row tiles 759 (H200). 48/8 heads, 56
// tokens up to 2,806 keys beside 488: 86 and 74.
TEST(ShortRows, beside_longer_ones_are_row_tiles_of_tokens_unless_prompts_take_long) {
  const auto is_mixed_beside_one_prompt = [](Call call) {  // the others have one token
    call.missing = (call.batch - 1) * (call.tokens - 1);
    EXPECT_EQ(plan_of(call)->num_launches, 1);
    return is_mixed(call);
  };
  EXPECT_FALSE(is_mixed_beside_one_prompt({.batch = 31, .tokens = 300, .keys = 1024}));
  EXPECT_FALSE(is_mixed_beside_one_prompt({.batch = 31, .tokens = 300, .keys = 1025}));
  EXPECT_FALSE(is_mixed_beside_one_prompt({.batch = 60, .tokens = 300, .keys = 1024}));
  // 128 row tiles of 93 KV tiles, or of 92.
  EXPECT_TRUE(is_mixed_beside_one_prompt({.batch = 31, .tokens = 512, .keys = 92 * 128 + 1}));
  EXPECT_FALSE(is_mixed_beside_one_prompt({.batch = 31, .tokens = 512, .keys = 92 * 128}));
  // A KV head for each query head: row tiles of decoding have one row in any case.
  for (const int32_t keys : {4096, 4097, 40'000}) {
    EXPECT_FALSE(
        is_mixed_beside_one_prompt({.batch = 31, .tokens = 1000, .keys = keys, .group = 1}));
  }
}

TEST(ShortRows, beside_longer_ones_have_a_launch_of_their_own_with_general_scores) {
  EXPECT_EQ(plan_of({.batch = 4, .tokens = 512, .missing = 900, .softcap = 30})->num_launches, 1);
  const auto plan =
      plan_of({.batch = 4, .tokens = 512, .missing = 900, .softcap = 30, .keys = 20'000});
  ASSERT_EQ(plan->num_launches, 2);
  EXPECT_EQ(plan->launches[0].rows, RowKind::kPacked);
  EXPECT_EQ(plan->launches[0].max_rows, 16);
  EXPECT_EQ(plan->launches[1].min_rows, 17);
  EXPECT_FALSE(plan->launches[0].is_mixed() || plan->launches[1].is_mixed());
}

TEST(ShortRows, beside_longer_ones_do_not_share_a_launch_where_the_caller_asks_for_something_else) {
  Options invariant, by_number;
  invariant.is_batch_invariant = true;
  by_number.num_kv_splits = 1;
  for (const Options& options : {invariant, by_number}) {
    const Call call{.batch = 4, .tokens = 512, .missing = 900, .keys = 20'000};
    EXPECT_TRUE(is_mixed(call));
    Call asked = call;
    asked.options = options;
    EXPECT_FALSE(is_mixed(asked));
  }
}

// 28 sequences of 1 to 48 tokens over 88 to 8,554 keys, 4/1 heads of 64, in two launches: 56.8 us;
// in one of tokens 32.
TEST(ShortRows, of_unequal_lengths_have_one_launch_of_tokens) {
  for (const int32_t dim : {64, 96, 128, 256}) {
    for (const int32_t tokens : {42, 64}) {
      const Call call{.batch = 28, .tokens = tokens, .missing = 14 * tokens, .dim = dim};
      const auto plan = plan_of(call);
      ASSERT_EQ(plan->num_launches, 1) << dim;
      EXPECT_NE(plan->launches[0].rows, RowKind::kPacked) << dim;
      EXPECT_EQ(plan->launches[0].heads, 4) << dim;
      EXPECT_EQ(plan->launches[0].min_rows, 0) << dim;
    }
  }
  const Call call{.batch = 28, .tokens = 42, .missing = 14 * 42};
  Call capped = call, cached = call, few = call;
  capped.softcap = 30;
  cached.cache = DType::kF8E4M3;
  few.tokens = 4;
  few.missing = 28;
  EXPECT_EQ(plan_of(capped)->num_launches, 1);
  EXPECT_EQ(plan_of(cached)->num_launches, 1);
  EXPECT_EQ(plan_of(cached)->launches[0].load, LoadKind::kTmaWiden);
  // A few rows, which are packed where all have as many, stay so.
  EXPECT_EQ(plan_of(few)->launches[0].rows, RowKind::kPacked);
}

// 17 sequences of 6 to 48 tokens over up to 6,723 keys, 20/4 heads: without splits 78.0 us, in two
// 52.9, in three 45.3. Sequences with a third of the keys have one.
TEST(ShortRows, of_unequal_lengths_have_splits_by_the_longest) {
  const Call call{.batch = 17, .tokens = 48, .missing = 17 * 21, .keys = 6723};
  const Launch launch = launch_of(call);
  EXPECT_EQ(launch.num_splits, 2);
  EXPECT_EQ(launch.least_split_tiles, 27);  // of 53
  Call by_number = call;
  by_number.options.num_kv_splits = 3;
  EXPECT_EQ(launch_of(by_number).num_splits, 3);
  EXPECT_EQ(launch_of(by_number).least_split_tiles, 1);
}

// An empty launch of packed rows takes 5 us.
TEST(ShortRows, have_no_launch_where_total_q_leaves_none_for_them) {
  const auto equal = plan_of({.batch = 4, .tokens = 512});
  ASSERT_EQ(equal->num_launches, 1);
  EXPECT_EQ(equal->launches[0].rows, RowKind::kTokens);
  EXPECT_EQ(equal->launches[0].min_rows, 0);   // a graph may be replayed with shorter ones
  const auto launches = [](int32_t missing) {  // general scores: packed rows have their own
    const Call call{.batch = 4, .tokens = 512, .missing = missing, .softcap = 30, .keys = 20'000};
    return plan_of(call)->num_launches;
  };
  EXPECT_EQ(launches(512 - 17), 1);
  EXPECT_EQ(launches(512 - 16), 2);
  EXPECT_FALSE(is_mixed({.batch = 4, .tokens = 512, .missing = 512 - 17, .keys = 20'000}));
  EXPECT_TRUE(is_mixed({.batch = 4, .tokens = 512, .missing = 512 - 16, .keys = 20'000}));
  EXPECT_FALSE(is_mixed({.batch = 4, .tokens = 512, .missing = 512 - 16}));  // little work
  EXPECT_EQ(plan_of({.batch = 1, .tokens = 512, .missing = 1})->num_launches, 1);
}

TEST(ShortRows, of_equal_lengths_have_a_launch_where_the_batch_must_be_invariant) {
  Options options;
  options.is_batch_invariant = true;
  for (const DType cache : {DType::kBF16, DType::kF8E4M3}) {
    EXPECT_EQ(
        plan_of({.batch = 4, .tokens = 512, .cache = cache, .options = options})->num_launches, 2);
    // One sequence, too: of 512 rows of Q all but four may be padding, which the host can't read.
    EXPECT_EQ(
        plan_of({.batch = 1, .tokens = 512, .cache = cache, .options = options})->num_launches, 2);
    EXPECT_EQ(plan_of({.batch = 1, .tokens = 512, .cache = cache})->num_launches, 1);
  }
}

TEST(ShortRows, over_an_e4m3_cache_beside_prompts_have_their_kernel) {
  // One of a token.
  const auto plan =
      plan_of({.batch = 4, .tokens = 100, .cache = DType::kF8E4M3, .missing = 99, .keys = 48'000});
  ASSERT_EQ(plan->num_launches, 2);
  EXPECT_EQ(plan->launches[0].load, LoadKind::kTmaFp8);
  EXPECT_EQ(plan->launches[0].max_rows, 4);  // of four query heads each
  EXPECT_EQ(plan->launches[1].load, LoadKind::kTmaWiden);
  EXPECT_EQ(plan->launches[1].min_rows, 5);
  // Little work: all are row tiles of tokens.
  const auto little = plan_of({.batch = 4, .tokens = 100, .cache = DType::kF8E4M3, .missing = 99});
  ASSERT_EQ(little->num_launches, 1);
  EXPECT_EQ(little->launches[0].load, LoadKind::kTmaWiden);
  EXPECT_EQ(little->launches[0].min_rows, 0);
}

TEST(ShortRows, do_not_depend_on_the_batch_where_it_must_be_invariant) {
  Options options;
  options.is_batch_invariant = true;
  EXPECT_EQ(launch_of({.batch = 1, .tokens = 64, .options = options}).rows, RowKind::kPacked);
  // Up to 16 packed rows have a kernel of their own over an e4m3 cache, also beside longer ones.
  for (const int32_t longest : {1, 4, 5, 64, 100}) {
    const auto plan =
        plan_of({.batch = 4, .tokens = longest, .cache = DType::kF8E4M3, .options = options});
    EXPECT_EQ(plan->launches[0].rows, RowKind::kPacked);
    EXPECT_EQ(plan->launches[0].load, LoadKind::kTmaFp8) << longest;
    ASSERT_EQ(plan->num_launches, longest > 4 ? 2 : 1);
    if (longest <= 4) continue;
    EXPECT_EQ(plan->launches[0].max_rows, 4);
    EXPECT_EQ(plan->launches[1].min_rows, 5);
  }
  // Without row tiles of tokens one kernel serves all lengths.
  options.schedule = Schedule::kStreamK;
  for (const int32_t longest : {1, 100}) {
    const auto plan =
        plan_of({.batch = 4, .tokens = longest, .cache = DType::kF8E4M3, .options = options});
    ASSERT_EQ(plan->num_launches, 1);
    EXPECT_EQ(plan->launches[0].load, LoadKind::kGather);
  }
}

}  // namespace
}  // namespace pagoda::mha_sm90
