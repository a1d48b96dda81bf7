// Which calls mha_sm90 leaves to the kernels on cp.async: those that were slower here on an H200
// (README.md, Measured).
#include <cstdint>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "kernels/mha_sm90/instances.hpp"
#include "kernels/mha_sm90/launch_plan.hpp"
#include "kernels/mha_sm90/plan_test_problem.hpp"
#include "pagoda/mask.hpp"

namespace pagoda::mha_sm90 {
namespace {

constexpr int32_t kMultiprocessors = 132;

// A call of dense_problem.
struct Call {
  int32_t batch, tokens, keys;
  int32_t head_dim = 128;
  float softcap = 0;
  DType cache = DType::kBF16;
  enum class Masked : uint8_t { kNo, kWindow, kChunks } masked = Masked::kNo;
};
using Masked = Call::Masked;

core::Problem problem(const Call& call) {
  core::Problem p = dense_problem(call.batch, call.tokens, call.keys, call.cache, call.head_dim);
  p.score_mod.softcap = call.softcap;
  static const Mask window = Mask::window(1024, 0), chunks = Mask::chunked(1024);
  if (call.masked == Masked::kWindow) p.mask = window.nodes();
  if (call.masked == Masked::kChunks) p.mask = chunks.nodes();
  return p;
}

bool is_left_to_cp_async(const Call& call, const Options& options = {}) {
  std::string reason;
  const bool result = is_ranked_lower(problem(call), kMultiprocessors, options, &reason);
  EXPECT_EQ(result, !reason.empty());
  return result;
}

TEST(Ranking, one_token_is_decoded_by_cp_async) {
  for (const int32_t batch : {1, 16, 32, 40, 48, 64, 128, 200, 992}) {
    EXPECT_TRUE(is_left_to_cp_async({batch, 1, 1024})) << batch;
    EXPECT_TRUE(is_left_to_cp_async({batch, 1, 131'072})) << batch;
    EXPECT_TRUE(is_left_to_cp_async({batch, 1, 131'072, 64})) << batch;
  }
  EXPECT_FALSE(is_left_to_cp_async({993, 1, 131'072}));  // too much workspace
  EXPECT_TRUE(is_left_to_cp_async({64, 1, 4096, 256}));
  EXPECT_TRUE(is_left_to_cp_async({2, 4, 1674, 256}));
  EXPECT_FALSE(is_left_to_cp_async({1, 1, 1024, 264}));
}

// us, by these, by mha_sm90_decode: 16 heads, 1 x 1,024 keys 15.8, 11.9; 64 x 4,096 95.4, 87.2; 64
// heads, 3 x 650 21.9, 12.9; 11 x 1,649 29.7, 35.7; 128 heads, 1 x 1,024 18.8, 13.0; 8 x 1,024
// 21.9, 26.6; 32 heads, 25 x 608 24.2, 20.5; 4 x 9,812 34.7, 39.0.
TEST(Ranking, latent_attention_of_few_rows_or_few_bytes) {
  const auto is_left = [](int32_t batch, int32_t keys, int32_t heads, const Options& options = {}) {
    core::Problem p = dense_problem(batch, 1, keys, DType::kBF16, 576);
    p.num_q_heads = p.group = heads;
    p.num_kv_heads = 1;
    p.head_dim_vo = 512;
    p.v = p.k;
    return is_ranked_lower(p, kMultiprocessors, options, nullptr);
  };
  EXPECT_TRUE(is_left(1, 1024, 16));
  EXPECT_TRUE(is_left(64, 4096, 16));
  EXPECT_TRUE(is_left(3, 650, 64));
  EXPECT_FALSE(is_left(11, 1649, 64));
  EXPECT_TRUE(is_left(1, 1024, 128));
  EXPECT_FALSE(is_left(8, 1024, 128));
  EXPECT_TRUE(is_left(25, 608, 32));
  EXPECT_FALSE(is_left(4, 9812, 32));
  EXPECT_FALSE(is_left(1, 1024, 16, {.is_batch_invariant = true}));
  EXPECT_FALSE(is_left(1, 1024, 16, {.num_kv_splits = 2}));
}

// us, by these, by mha_sm90_decode: 32/8 heads, 1 x 1,024 keys 15.1, 9.7; 64 x 4,096 145.0, 142.6;
// 128 x 8,192 510.8, 506.0; two row tiles, 8 tokens, 1 x 8,192 18.9, 22.0; 64 x 2,048 108.4, 115.4.
TEST(Ranking, decoding_over_an_fp8_cache) {
  const auto is_left = [](int32_t batch, int32_t tokens, int32_t keys, int32_t head_dim = 128,
                          float softcap = 0) {
    return is_left_to_cp_async({batch, tokens, keys, head_dim, softcap, DType::kF8E4M3});
  };
  EXPECT_TRUE(is_left(1, 1, 1024));
  EXPECT_TRUE(is_left(64, 1, 4096));
  EXPECT_TRUE(is_left(128, 1, 8192));
  EXPECT_TRUE(is_left(128, 1, 8192, 64));
  EXPECT_TRUE(is_left(8, 4, 2000));
  EXPECT_FALSE(is_left(1, 5, 2000));  // 20 rows: two row tiles
  EXPECT_TRUE(is_left(4, 1, 1024, 256));
  EXPECT_FALSE(is_left(4, 1, 1024, 192));
  EXPECT_FALSE(is_left(1, 1, 1024, 128, 30));
  Options options;
  options.num_kv_splits = 2;
  EXPECT_FALSE(is_left_to_cp_async({1, 1, 1024, 128, 0, DType::kF8E4M3}, options));
  for (const DType q : {DType::kF16, DType::kF8E4M3, DType::kF32}) {
    core::Problem p = problem({1, 1, 1024, 128, 0, DType::kF8E4M3});
    p.q.dtype = q;
    EXPECT_EQ(is_ranked_lower(p, kMultiprocessors, {}, nullptr), q != DType::kF32);
  }
}

TEST(Ranking, a_few_tokens_as_one) {
  for (const int32_t batch : {1, 15, 16, 32, 40, 64}) {
    EXPECT_TRUE(is_left_to_cp_async({batch, 4, 4096})) << batch;
    EXPECT_TRUE(is_left_to_cp_async({batch, 2, 131'200})) << batch;
  }
  EXPECT_FALSE(is_left_to_cp_async({64, 5, 4096}));  // 20 rows
  EXPECT_FALSE(is_left_to_cp_async({64, 64, 1024}));
}

// Two row tiles of a KV head where they load few bytes, or take less time than packed rows by the
// models of both: 4 x 8 tokens over 1,000 keys 18.8 to 15.9 us, 4 x 6 over 4,000 33.9 and 35.6.
TEST(Ranking, row_tiles_of_tokens_by_the_time_of_packed_rows) {
  EXPECT_TRUE(is_left_to_cp_async({1, 8, 1000}));
  EXPECT_TRUE(is_left_to_cp_async({4, 8, 1000}));
  EXPECT_FALSE(is_left_to_cp_async({4, 6, 4000}));
  EXPECT_FALSE(is_left_to_cp_async({1, 8, 8000}));
  EXPECT_FALSE(is_left_to_cp_async({1, 5, 20'000}));
  EXPECT_FALSE(is_left_to_cp_async({1, 17, 100}));
}

TEST(Ranking, windows_are_decoded_by_cp_async) {
  for (const int32_t head_dim : {64, 72, 96, 128, 256}) {
    for (const int32_t tokens : {1, 4}) {
      EXPECT_TRUE(
          is_left_to_cp_async({64, tokens, 131'072, head_dim, 0, DType::kBF16, Masked::kWindow}))
          << head_dim;
    }
  }
}

// Several row tiles of a KV head, too: 5 x 6 tokens over 7,386 keys, of which they see 4,096, 41.0
// us, packed rows 51.8; 40 x 5 66.8, 76.3.
TEST(Ranking, row_tiles_with_a_window) {
  EXPECT_TRUE(is_left_to_cp_async({5, 6, 7386, 128, 0, DType::kBF16, Masked::kWindow}));
  EXPECT_TRUE(is_left_to_cp_async({40, 5, 3000, 128, 0, DType::kBF16, Masked::kWindow}));
  EXPECT_FALSE(is_left_to_cp_async({40, 5, 3000}));
  EXPECT_FALSE(is_left_to_cp_async({5, 6, 7386, 96, 0, DType::kBF16, Masked::kWindow}));
}

// Which the kernels for decoding do not serve.
TEST(Ranking, a_few_tokens_with_a_chunked_mask_by_bytes_and_row_tiles) {
  const auto is_left = [](int32_t batch, int32_t tokens, int32_t keys) {
    return is_left_to_cp_async({batch, tokens, keys, 128, 0, DType::kBF16, Masked::kChunks});
  };
  EXPECT_TRUE(is_left(1, 4, 131'072));   // 512 MiB
  EXPECT_FALSE(is_left(1, 4, 131'200));  // more, for 8 row tiles
  EXPECT_FALSE(is_left(16, 4, 4096));    // a row tile a multiprocessor
  EXPECT_TRUE(is_left(15, 4, 4096));     // fewer
  EXPECT_TRUE(is_left(64, 4, 4096));     // 1 GiB, for 512 row tiles
}

// As of head dims 64 and 128, whose kernels decode narrower rows.
TEST(Ranking, other_head_dims_are_decoded_by_cp_async) {
  for (const int32_t head_dim : {32, 40, 72, 80, 96, 112}) {
    EXPECT_TRUE(is_left_to_cp_async({1, 1, 1024, head_dim})) << head_dim;
    EXPECT_TRUE(is_left_to_cp_async({16, 1, 2048, head_dim})) << head_dim;
    EXPECT_TRUE(is_left_to_cp_async({4, 4, 2048, head_dim})) << head_dim;
    EXPECT_FALSE(is_left_to_cp_async({16, 5, 2048, head_dim})) << head_dim;  // 20 rows
  }
  EXPECT_TRUE(is_left_to_cp_async({16, 1, 2048, 96, 30}));  // general scores: not measured
}
// Chunks hide keys, so that token generation would serve them there: it reads padded rows at half
// of the copy rate.
TEST(Ranking, other_head_dims_with_a_chunked_mask_are_decoded_here) {
  for (const int32_t head_dim : {72, 96, 112}) {
    for (const int32_t batch : {1, 16}) {
      EXPECT_FALSE(
          is_left_to_cp_async({batch, 1, 2048, head_dim, 0, DType::kBF16, Masked::kChunks}))
          << head_dim;
    }
  }
}

TEST(Ranking, soft_caps_are_decoded_by_cp_async) {
  for (const int32_t head_dim : {64, 96, 128, 256}) {
    EXPECT_TRUE(is_left_to_cp_async({64, 1, 131'072, head_dim, 30})) << head_dim;
  }
}

TEST(Ranking, biases_by_bytes) {
  const auto is_left = [](int32_t batch) {
    core::Problem p = problem({batch, 1, 4096});
    static const std::vector<float> slopes(static_cast<size_t>(p.num_q_heads), 0.5F);
    p.score_mod.alibi_slopes = {slopes.data(), p.num_q_heads};
    return is_ranked_lower(p, kMultiprocessors, {}, nullptr);
  };
  EXPECT_TRUE(is_left(16));
  EXPECT_FALSE(is_left(64));
}

TEST(Ranking, a_batch_invariant_call_is_never_ranked_by_its_batch) {
  Options options;
  options.is_batch_invariant = true;
  EXPECT_FALSE(is_left_to_cp_async({1, 1, 1024}, options));
}

// As many packed row tiles as multiprocessors need no split; one CTA each then.
TEST(Ranking, row_tiles_as_many_as_multiprocessors_get_a_cta_each) {
  const auto ctas = [](int32_t batch, DType cache) {
    const core::Problem p = dense_problem(batch, 4, 8192, cache);
    return make_plan(kShapes[2], p, kMultiprocessors, {})->launches[0].ctas;
  };
  EXPECT_EQ(ctas(16, DType::kBF16), kMultiprocessors);  // 128 row tiles
  EXPECT_EQ(ctas(15, DType::kBF16), 2 * kMultiprocessors);
  EXPECT_EQ(ctas(17, DType::kBF16), 2 * kMultiprocessors);
  EXPECT_EQ(ctas(16, DType::kF8E4M3), 2 * kMultiprocessors);  // half the bytes in flight
}

}  // namespace
}  // namespace pagoda::mha_sm90
