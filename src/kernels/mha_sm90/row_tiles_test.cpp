// Which prompts are row tiles of 192 tokens (tall), which of 128, which are short, for prompts of
// few keys, and which of 64 tokens, for prompts of few row tiles.
#include <algorithm>
#include <cstdint>
#include <gtest/gtest.h>
#include <vector>

#include "kernels/mha_sm90/instances.hpp"
#include "kernels/mha_sm90/launch_plan.hpp"
#include "kernels/mha_sm90/plan_test_problem.hpp"
#include "pagoda/mask.hpp"

namespace pagoda::mha_sm90 {
namespace {

constexpr int32_t kMultiprocessors = 132;

struct Call {
  int32_t batch, tokens;
  int32_t q_heads = 32;
  bool is_causal = true;
  int32_t keys = 0;  // 0: as many as tokens
  int32_t head_dim = 128;
  DType dtype = DType::kBF16;
  Options options{};
  const Mask* mask = nullptr;  // in place of a causal or none
  int32_t kv_heads = 8;        // or fewer query heads
  int32_t rows = 0;            // ragged: of all sequences together; 0: not ragged
};

Launch launch_of(const Call& call) {
  static const Mask full = Mask::none();
  const int32_t keys = call.keys == 0 ? call.tokens : call.keys;
  core::Problem p = dense_problem(call.batch, call.tokens, keys, call.dtype, call.head_dim);
  p.q.dtype = call.dtype;
  p.num_q_heads = call.q_heads;
  p.num_kv_heads = std::min(call.q_heads, call.kv_heads);
  p.group = call.q_heads / p.num_kv_heads;
  if (!call.is_causal) p.mask = full.nodes();
  if (call.mask != nullptr) p.mask = call.mask->nodes();
  static const std::vector<int32_t> kCuRows(65);  // never read: lengths are on the device
  if (call.rows > 0) {
    p.is_ragged = true;
    p.cu_seqlens_q = kCuRows;
    p.total_q = call.rows;
  }
  const auto shape = std::ranges::find_if(kShapes, [&call](const Shape& s) {
    return s.dtype == call.dtype && s.depth_qk == call.head_dim;
  });
  const auto plan = make_plan(*shape, p, kMultiprocessors, call.options);
  return plan->launches[plan->num_launches - 1];
}
RowKind rows_of(const Call& call) { return launch_of(call).rows; }

TEST(TallRows, serve_prompts_of_many_row_tiles) {
  EXPECT_EQ(rows_of({.batch = 32, .tokens = 512, .q_heads = 16}), RowKind::kTallTokens);
  EXPECT_EQ(rows_of({.batch = 8, .tokens = 2048, .q_heads = 16}), RowKind::kTallTokens);
  EXPECT_EQ(rows_of({.batch = 1, .tokens = 16'384, .q_heads = 8}), RowKind::kTallTokens);
  EXPECT_EQ(rows_of({.batch = 4, .tokens = 2048}), RowKind::kTallTokens);
}

// 1 x 2048 and 1 x 4096 tokens of 8 query heads: 34.6 us became 40.0, 60.2 73.5.
TEST(TallRows, are_too_few_for_one_prompt_of_few_heads) {
  EXPECT_EQ(rows_of({.batch = 1, .tokens = 2048, .q_heads = 8}), RowKind::kTokens);
  EXPECT_EQ(rows_of({.batch = 1, .tokens = 4096, .q_heads = 8}), RowKind::kTokens);
}

// As fast as those of 128 rows: 66.0 and 65.9 us, 52.7 and 52.2.
TEST(TallRows, are_left_where_they_gain_nothing) {
  EXPECT_EQ(rows_of({.batch = 1, .tokens = 2048}), RowKind::kTokens);
  EXPECT_EQ(rows_of({.batch = 1, .tokens = 1536, .q_heads = 40}), RowKind::kTokens);
}

TEST(TallRows, are_chosen_by_their_last_wave_where_all_see_as_many_keys) {
  // Six waves, or four of 1.4 times the time.
  EXPECT_EQ(rows_of({.batch = 6, .tokens = 900, .q_heads = 16, .is_causal = false}),
            RowKind::kTallTokens);
  // The largest conformance case: just over one wave, or one.
  EXPECT_EQ(rows_of({.batch = 33, .tokens = 384, .q_heads = 2, .is_causal = false, .keys = 130}),
            RowKind::kTallTokens);
  // Four waves of 128 rows; three of 192.
  EXPECT_EQ(rows_of({.batch = 1, .tokens = 2048, .is_causal = false}), RowKind::kTokens);
  // Of many keys the last of the three waves, of two thirds of the multiprocessors, is split.
  EXPECT_EQ(rows_of({.batch = 1, .tokens = 2048, .keys = 32'768}), RowKind::kTallTokens);
}

TEST(TallRows, need_256_rows_of_a_sequence) {
  EXPECT_EQ(rows_of({.batch = 64, .tokens = 250, .q_heads = 8, .is_causal = false}),
            RowKind::kTokens);
  // Or as many rows of the query heads that it packs.
  EXPECT_EQ(rows_of({.batch = 64, .tokens = 255, .is_causal = false}), RowKind::kTallTokens);
}

TEST(TallRows, are_of_head_dims_96_and_128) {
  EXPECT_EQ(rows_of({.batch = 8, .tokens = 2048, .head_dim = 96}), RowKind::kTallTokens);
  EXPECT_EQ(rows_of({.batch = 8, .tokens = 4096, .head_dim = 64}), RowKind::kTokens);
}

TEST(TallRows, are_of_e4m3_queries_of_head_dim_64) {
  Call call{.batch = 8, .tokens = 2048, .head_dim = 64, .dtype = DType::kF8E4M3};
  EXPECT_EQ(rows_of(call), RowKind::kTallTokens);
  call.is_causal = false;
  EXPECT_EQ(rows_of(call), RowKind::kTallTokens);
  call.tokens = 255;  // of four heads: 25.8 us, of one, with two consumers, 27.0
  EXPECT_EQ(rows_of(call), RowKind::kTallTokens);
  EXPECT_EQ(launch_of(call).heads, 4);
  call.tokens = 100;
  EXPECT_EQ(rows_of(call), RowKind::kTokens);
  call = {.batch = 8, .tokens = 2048, .dtype = DType::kF8E4M3};
  EXPECT_EQ(rows_of(call), RowKind::kTokens);
}

TEST(TallRows, do_not_depend_on_the_batch_where_it_must_be_invariant) {
  Options options;
  options.is_batch_invariant = true;
  EXPECT_EQ(rows_of({.batch = 8, .tokens = 2048, .options = options}), RowKind::kTokens);
}

// 16 x 1024 tokens of 32 heads, causal: 214 us became 190; 8 x 2048 full 577 605.
TEST(ShortRows, serve_many_row_tiles_that_see_few_keys) {
  EXPECT_EQ(rows_of({.batch = 16, .tokens = 1024, .head_dim = 64}), RowKind::kShortTokens);
  EXPECT_EQ(rows_of({.batch = 8, .tokens = 2048, .head_dim = 64}), RowKind::kShortTokens);
  EXPECT_EQ(rows_of({.batch = 8, .tokens = 3000, .head_dim = 64}), RowKind::kTokens);
  EXPECT_EQ(rows_of({.batch = 16, .tokens = 1024, .is_causal = false, .head_dim = 64}),
            RowKind::kShortTokens);
  EXPECT_EQ(rows_of({.batch = 16, .tokens = 1025, .is_causal = false, .head_dim = 64}),
            RowKind::kTokens);
  EXPECT_EQ(rows_of({.batch = 2, .tokens = 512, .keys = 4096, .head_dim = 64}), RowKind::kTokens);
}

// One sequence of 4096 tokens, 64 heads, window of 128 keys: 73.6 us became 61.2.
TEST(ShortRows, serve_windows) {
  const Mask narrow = Mask::window(127, 0), wide = Mask::window(1500, 0);
  Call call{.batch = 4, .tokens = 8192, .head_dim = 64, .mask = &narrow};
  EXPECT_EQ(rows_of(call), RowKind::kShortTokens);
  call.mask = &wide;
  EXPECT_EQ(rows_of(call), RowKind::kTokens);
}

// 4 x 300 tokens, 40/8 heads, causal: 23.3 us became 20.2; 1 x 2000 of 14/2 heads 29.8 would be
// 32.9.
TEST(ShortRows, serve_few_row_tiles_if_all_see_few_keys) {
  EXPECT_EQ(rows_of({.batch = 4, .tokens = 300, .q_heads = 40, .head_dim = 64}),
            RowKind::kShortTokens);
  EXPECT_EQ(rows_of({.batch = 1, .tokens = 1000, .head_dim = 64}), RowKind::kShortTokens);
  EXPECT_EQ(rows_of({.batch = 1, .tokens = 2000, .head_dim = 64}), RowKind::kTokens);
}

// 4 x 300 tokens, 40/8 heads: 28.4 us became 23.6, 64 x 256 86.4 71.1; 16 x 333 62.2 would be 65.5.
// 8 x 373 tokens of 12/12 heads: 288 short row tiles in two waves of 264, or 192 of three consumers
// in two of 132: 26.2 us, 23.5. 4 x 500 of 16/16: 256 in one, 192 in two: 20.7, 25.2.
TEST(ShortRows, of_full_prompts_of_head_dim_64_are_chosen_by_waves) {
  const auto rows = [](int32_t batch, int32_t tokens, int32_t heads, bool is_causal = false) {
    return rows_of({.batch = batch,
                    .tokens = tokens,
                    .q_heads = heads,
                    .is_causal = is_causal,
                    .head_dim = 64,
                    .kv_heads = heads});
  };
  EXPECT_EQ(rows(8, 373, 12), RowKind::kTokens);
  EXPECT_EQ(rows(4, 500, 16), RowKind::kShortTokens);
  EXPECT_EQ(rows(8, 373, 12, true), RowKind::kShortTokens);
}

TEST(ShortRows, of_head_dim_128_serve_causal_prompts_of_up_to_320_keys) {
  EXPECT_EQ(rows_of({.batch = 4, .tokens = 300, .q_heads = 40}), RowKind::kShortTokens);
  EXPECT_EQ(rows_of({.batch = 64, .tokens = 256, .q_heads = 16}), RowKind::kShortTokens);
  EXPECT_EQ(rows_of({.batch = 1, .tokens = 300}), RowKind::kShortTokens);
  EXPECT_NE(rows_of({.batch = 16, .tokens = 333}), RowKind::kShortTokens);
  EXPECT_NE(rows_of({.batch = 16, .tokens = 300, .is_causal = false}), RowKind::kShortTokens);
  EXPECT_NE(rows_of({.batch = 16, .tokens = 300, .head_dim = 96}), RowKind::kShortTokens);
}

RowKind prompt_rows(int32_t batch, int32_t tokens, int32_t heads, int32_t kv_heads,
                    bool is_causal) {
  return rows_of({.batch = batch,
                  .tokens = tokens,
                  .q_heads = heads,
                  .is_causal = is_causal,
                  .kv_heads = kv_heads});
}

// us, by row tiles of kTokens or kTallTokens, short ones: 200 x 40 99.7, 47.9; 100 x 64 68.2, 43.7;
// 16 x 64 18.8, 15.6; 28 x 63 36.6, 24.0; 33 x 141 65.9, 55.2; 90 x 150 185.7, 165.6; 16 x 150
// 24.4, 23.1; but 16 x 96 24.0, 25.5; 150 x 96 42.7, 46.2; 32 x 128 42.4, 44.2; 10 x 250 36.1,
// 38.9; 24 x 310 97.3, 104.8.
TEST(ShortRows, of_head_dim_128_serve_full_prompts_of_which_they_leave_fewer_rows_empty) {
  const auto rows = [](int32_t batch, int32_t tokens, int32_t heads, int32_t kv_heads) {
    return prompt_rows(batch, tokens, heads, kv_heads, false);
  };
  EXPECT_EQ(rows(200, 40, 16, 16), RowKind::kShortTokens);
  EXPECT_EQ(rows(100, 64, 32, 8), RowKind::kShortTokens);
  EXPECT_EQ(rows(16, 64, 40, 8), RowKind::kShortTokens);
  EXPECT_EQ(rows(28, 63, 32, 32), RowKind::kShortTokens);
  EXPECT_EQ(rows(33, 141, 32, 16), RowKind::kShortTokens);
  EXPECT_EQ(rows(90, 150, 40, 8), RowKind::kShortTokens);
  EXPECT_EQ(rows(16, 150, 16, 16), RowKind::kShortTokens);
  EXPECT_NE(rows(16, 96, 32, 32), RowKind::kShortTokens);
  EXPECT_NE(rows(150, 96, 8, 8), RowKind::kShortTokens);
  EXPECT_NE(rows(32, 128, 32, 32), RowKind::kShortTokens);
  EXPECT_NE(rows(10, 250, 32, 32), RowKind::kShortTokens);
  EXPECT_NE(rows(24, 310, 32, 8), RowKind::kShortTokens);
}

// Causal, as above: 200 x 93 94.6, 100.6; 16 x 96 24.3, 27.2; 32 x 128 42.5, 44.2; but 64 x 96
// 56.5, 43.8; 60 x 190 73.1, 60.0.
TEST(ShortRows, of_head_dim_128_and_one_kv_tile_leave_causal_prompts_that_fill_others_as_well) {
  const auto rows = [](int32_t batch, int32_t tokens, int32_t heads, int32_t kv_heads) {
    return prompt_rows(batch, tokens, heads, kv_heads, true);
  };
  EXPECT_EQ(rows(200, 93, 16, 16), RowKind::kTokens);
  EXPECT_EQ(rows(16, 96, 32, 32), RowKind::kTokens);
  EXPECT_EQ(rows(32, 128, 32, 32), RowKind::kTokens);
  EXPECT_EQ(rows(64, 96, 28, 4), RowKind::kShortTokens);
  EXPECT_EQ(rows(64, 64, 40, 8), RowKind::kShortTokens);
  EXPECT_EQ(rows(60, 190, 16, 16), RowKind::kShortTokens);
}

// us, with one head a row tile, with all: 90 x 150, 40/8 heads 154.6, 141.0; of head dim 256 100 x
// 115, 48/8 267.6, 247.9; 20 x 200, 16/4 51.5, 44.9; 60 x 250, 8/4 73.2, 70.1; full 267.4, 257.8;
// 57.2, 54.6; 86.3, 85.1; 8 x 1,000, 16/4 130.6, 128.5; full 206.8, 205.0.
TEST(HeadPacking, of_prompts_of_head_dim_256_has_all_heads) {
  EXPECT_EQ(launch_of({.batch = 90, .tokens = 150, .q_heads = 40}).heads, 5);
  for (const bool is_causal : {false, true}) {
    const auto heads = [&](int32_t batch, int32_t tokens, int32_t q_heads, int32_t kv_heads) {
      return launch_of({.batch = batch,
                        .tokens = tokens,
                        .q_heads = q_heads,
                        .is_causal = is_causal,
                        .head_dim = 256,
                        .kv_heads = kv_heads})
          .heads;
    };
    EXPECT_EQ(heads(100, 115, 48, 8), 6);
    EXPECT_EQ(heads(20, 200, 16, 4), 4);
    EXPECT_EQ(heads(60, 250, 8, 4), 2);
    EXPECT_EQ(heads(8, 1000, 16, 4), 4);
  }
}

// us, as chosen before, now: tall row tiles of one head, larger ones of all: 60 x 400, 28/4 heads
// 391.4, 324.5, causal 272.0, 227.2; tall ones of one, of all: 54 x 536, 32/8, causal 350.2, 325.6,
// 13 x 1,204 306.7, 281.2, 30 x 500, 16/4 92.0, 87.4; of 128 rows, 22 x 228 full, 40/8 76.5, 73.0.
TEST(HeadPacking, of_prompts_has_all_heads_where_the_model_sees_no_difference) {
  const auto launch = [](int32_t batch, int32_t tokens, int32_t q_heads, int32_t kv_heads,
                         bool is_causal = true) {
    return launch_of({.batch = batch,
                      .tokens = tokens,
                      .q_heads = q_heads,
                      .is_causal = is_causal,
                      .kv_heads = kv_heads});
  };
  for (const bool is_causal : {false, true}) {
    const Launch sevenths = launch(60, 400, 28, 4, is_causal);
    EXPECT_EQ(sevenths.rows, RowKind::kTokens);
    EXPECT_EQ(sevenths.heads, 7);
  }
  for (const Launch& tall :
       {launch(54, 536, 32, 8), launch(13, 1204, 32, 8), launch(30, 500, 16, 4)}) {
    EXPECT_EQ(tall.rows, RowKind::kTallTokens);
    EXPECT_EQ(tall.heads, 4);
  }
  const Launch fifths = launch(22, 228, 40, 8, false);
  EXPECT_EQ(fifths.rows, RowKind::kTokens);
  EXPECT_EQ(fifths.heads, 5);
}

// us, as chosen before, short row tiles of all heads: 11 x 48, 7/1 heads 9.9, 8.9; 4 x 45, 12/2
// 9.7, 8.8; 27 x 105, 14/2 19.5, 17.4; 20 x 300, 16/2 37.1, 34.5; 10 x 190, 32/4 23.7, 22.7, full
// 29.0, 27.2; 4 x 107 full, 24/8 11.7, 11.2.
TEST(HeadPacking, of_short_row_tiles_has_all_heads) {
  const auto heads = [](int32_t batch, int32_t tokens, int32_t q_heads, int32_t kv_heads,
                        bool is_causal = true) {
    const Launch launch = launch_of({.batch = batch,
                                     .tokens = tokens,
                                     .q_heads = q_heads,
                                     .is_causal = is_causal,
                                     .kv_heads = kv_heads});
    return launch.rows == RowKind::kShortTokens ? launch.heads : 0;
  };
  EXPECT_EQ(heads(11, 48, 7, 1), 7);
  EXPECT_EQ(heads(4, 45, 12, 2), 6);
  EXPECT_EQ(heads(27, 105, 14, 2), 7);
  EXPECT_EQ(heads(20, 300, 16, 2), 8);
  EXPECT_EQ(heads(10, 190, 32, 4), 8);
  EXPECT_EQ(heads(10, 190, 32, 4, false), 8);
  EXPECT_EQ(heads(4, 107, 24, 8, false), 3);
}

// One head a row tile: more row tiles than multiprocessors, so that some have two. us, one, several
// heads: 2 x 263 of 14/2 heads over 1,308 keys 30.6, 21.7; 9 x 273 of 5/1 over 627 24.3, 17.9; 1 x
// 418 of 48/8 over 923 36.2, 26.0; 8 x 420 of 6/2 heads of 64 over 1,843 43.2, 30.9.
TEST(HeadPacking, of_chunks_has_so_many_heads_that_row_tiles_are_one_wave) {
  const auto expect_heads = [](const Call& call, RowKind rows, int32_t heads) {
    const Launch launch = launch_of(call);
    EXPECT_EQ(launch.rows, rows) << call.batch << " x " << call.tokens;
    EXPECT_EQ(launch.heads, heads) << call.batch << " x " << call.tokens;
  };
  expect_heads({.batch = 2, .tokens = 263, .q_heads = 14, .keys = 1308, .kv_heads = 2},
               RowKind::kSingleTokens, 7);
  expect_heads({.batch = 9, .tokens = 273, .q_heads = 5, .keys = 627, .kv_heads = 1},
               RowKind::kTokens, 5);
  expect_heads({.batch = 1, .tokens = 418, .q_heads = 48, .keys = 923}, RowKind::kTallTokens, 2);
  expect_heads(
      {.batch = 8, .tokens = 420, .q_heads = 6, .keys = 1843, .head_dim = 64, .kv_heads = 2},
      RowKind::kTokens, 3);
  // Several waves either way: 30.4 us with five heads, 34.8 with one.
  expect_heads({.batch = 8, .tokens = 215, .q_heads = 20, .keys = 561, .kv_heads = 4},
               RowKind::kTokens, 5);
  // Prompts of 64 tokens: 144 row tiles of five heads 15.5 us, 120 of one 12.1.
  expect_heads({.batch = 24, .tokens = 64, .q_heads = 5, .head_dim = 256, .kv_heads = 1},
               RowKind::kSingleTokens, 1);
}

// Where loads take longest, row tiles that load the keys of a KV head once instead of twice. us,
// one, two heads: 7 x 40 of 32/16 heads over 4,548 keys 92.8, 77.7; 19 x 15 over 1,316 80.2, 70.8;
// 3 x 65 over 10,251 116.8, 95.1.
TEST(HeadPacking, of_chunks_loads_keys_once_where_they_take_longest) {
  const auto heads_of = [](int32_t batch, int32_t tokens, int32_t keys) {
    return launch_of({.batch = batch, .tokens = tokens, .keys = keys, .kv_heads = 16}).heads;
  };
  EXPECT_EQ(heads_of(7, 40, 4548), 2);
  EXPECT_EQ(heads_of(19, 15, 1316), 2);
  EXPECT_EQ(heads_of(3, 65, 10'251), 2);
  EXPECT_EQ(heads_of(4, 117, 2047), 1);    // two row tiles of one head, two of both: 35.8, 37.5
  EXPECT_EQ(heads_of(2, 140, 19'782), 1);  // one tall one each, three of both: 177, 197
}

// Of prompts of up to 128 tokens that are one wave even of the smallest row tiles: 2 x 110 of 16/16
// heads 11.7 us, in short row tiles 11.2, 2 x 79 10.6, 10.0.
TEST(ShortRows, of_head_dim_128_serve_few_prompts_of_up_to_128_tokens) {
  for (const bool is_causal : {false, true}) {
    Call call{.batch = 2, .tokens = 110, .q_heads = 16, .is_causal = is_causal, .kv_heads = 16};
    EXPECT_EQ(rows_of(call), RowKind::kShortTokens);
    call.batch = 5;  // 160 of them
    EXPECT_EQ(rows_of(call), RowKind::kTokens);
  }
}

// 425 tokens, 16/2 heads, over 1,094 keys 20.7 us, 17.3; 80 of 28/4 over 16,480 40.9, 36.9; but 128
// of 32/8 over 9,000 33.3, 35.6.
TEST(SingleRows, of_head_dim_64_serve_chunks_of_a_third_of_a_wave_or_few_keys) {
  const auto rows = [](int32_t tokens, int32_t keys, int32_t heads, int32_t kv_heads) {
    return rows_of({.batch = 1,
                    .tokens = tokens,
                    .q_heads = heads,
                    .keys = keys,
                    .head_dim = 64,
                    .kv_heads = kv_heads});
  };
  EXPECT_EQ(rows(425, 1094, 16, 2), RowKind::kSingleTokens);
  EXPECT_EQ(rows(80, 16'480, 28, 4), RowKind::kSingleTokens);
  EXPECT_EQ(rows(128, 9000, 32, 8), RowKind::kTokens);
}

// 1 x 1000 tokens, 12 heads: 19.4 us became 17.7 (head dim 64), 22.2 19.6 (128), 35.6 30.7 (256).
TEST(SingleRows, serve_causal_prompts_of_few_row_tiles) {
  for (const int32_t dim : {64, 128, 256}) {
    EXPECT_EQ(rows_of({.batch = 1, .tokens = 1000, .q_heads = 12, .head_dim = dim}),
              RowKind::kSingleTokens);
    EXPECT_NE(rows_of({.batch = 1, .tokens = 3000, .q_heads = 8, .head_dim = dim}),
              RowKind::kSingleTokens);
  }
  EXPECT_EQ(rows_of({.batch = 1, .tokens = 1000, .q_heads = 12, .dtype = DType::kF16}),
            RowKind::kSingleTokens);
}

// 1 x 2000 tokens, 8 heads: 29.9 us became 25.1 (head dim 64), 30.6 30.5 (128), 67.4 43.4 (256).
TEST(SingleRows, of_two_a_multiprocessor_are_not_too_many_but_at_head_dim_128) {
  EXPECT_EQ(rows_of({.batch = 1, .tokens = 2000, .q_heads = 8, .head_dim = 64}),
            RowKind::kSingleTokens);
  EXPECT_EQ(rows_of({.batch = 1, .tokens = 2000, .q_heads = 8}), RowKind::kTokens);
  EXPECT_EQ(rows_of({.batch = 1, .tokens = 2000, .q_heads = 8, .head_dim = 256}),
            RowKind::kSingleTokens);
}

// 12 x 1000 tokens full: 22.3 us would be 30.2, at head dim 256 33.6 42.5.
TEST(SingleRows, are_too_many_where_all_see_as_many_keys_and_some_multiprocessors_get_two) {
  EXPECT_EQ(rows_of({.batch = 1, .tokens = 1000, .q_heads = 8, .is_causal = false}),
            RowKind::kSingleTokens);
  for (const int32_t dim : {128, 256}) {
    EXPECT_EQ(
        rows_of({.batch = 1, .tokens = 1000, .q_heads = 12, .is_causal = false, .head_dim = dim}),
        RowKind::kTokens);
  }
}

// Chunks of one wave of them: by the time of all row tiles, too. us, one consumer, two: 6 x 128 of
// 8/1 heads over 1,200 keys 21.2, 21.9; 3 x 90 of 24/8 over 2,200 30.1, 33.0; but 2 x 264 of 5/1
// over 1,834, whose larger row tiles are split, 21.6, 19.6; 1 x 300 of 16/2 over 1,500 22.6, 21.4.
TEST(SingleRows, of_head_dim_128_are_chosen_by_the_time_of_all_row_tiles) {
  const auto rows = [](int32_t batch, int32_t tokens, int32_t keys, int32_t q_heads,
                       int32_t kv_heads) {
    return rows_of(
        {.batch = batch, .tokens = tokens, .q_heads = q_heads, .keys = keys, .kv_heads = kv_heads});
  };
  EXPECT_EQ(rows(6, 128, 1200, 8, 1), RowKind::kSingleTokens);
  EXPECT_EQ(rows(3, 90, 2200, 24, 8), RowKind::kSingleTokens);
  EXPECT_EQ(rows(2, 264, 1834, 5, 1), RowKind::kTokens);
  EXPECT_EQ(rows(1, 300, 1500, 16, 2), RowKind::kTokens);
}

// 128 tokens of 32 heads over 16,384 keys: 64.1 us would be 88.8.
TEST(SingleRows, of_many_keys_are_rather_split) {
  for (const int32_t dim : {64, 128, 256}) {
    EXPECT_EQ(rows_of({.batch = 1, .tokens = 128, .keys = 16'384, .head_dim = dim}),
              RowKind::kTokens);
  }
}

// 256 tokens of 8/1 heads over 4096 keys: 26.8 us became 23.5 (head dim 64), 29.0 26.4 (128); 128
// over 20,000 38.2 27.9 (64), but 31.9 37.8 (128). 256 of 8 heads over 8192: 58.8 54.2 by two
// consumers (256).
// 48 heads of 145 tokens have 144 row tiles, 48 of which hold 17 tokens: 14.0 us, short ones 12.0.
TEST(SingleRows, are_too_many_with_the_partly_filled_ones_at_head_dim_128) {
  EXPECT_EQ(rows_of({.batch = 1, .tokens = 145, .q_heads = 48}), RowKind::kShortTokens);
  EXPECT_EQ(rows_of({.batch = 3, .tokens = 134, .q_heads = 16, .kv_heads = 4}),
            RowKind::kShortTokens);
  EXPECT_EQ(rows_of({.batch = 1, .tokens = 250, .q_heads = 24}), RowKind::kSingleTokens);
}

// 6 tokens of 28/4 heads over 10,000 keys 25.6 us, 24.8. 2 x 32 tokens, 4/1 heads, over 20,447
// 32.4, 31.0; since merges of many splits are fast all heads in 32 splits: 24.6, 24.1 (H200).
TEST(SingleRows, serve_any_number_of_keys_where_larger_row_tiles_are_no_fewer) {
  const Launch all_heads =
      launch_of({.batch = 2, .tokens = 32, .q_heads = 4, .keys = 20'447, .kv_heads = 1});
  EXPECT_EQ(all_heads.rows, RowKind::kTokens);
  EXPECT_EQ(all_heads.heads, 4);
  EXPECT_EQ(all_heads.num_splits, 32);
  EXPECT_EQ(rows_of({.batch = 1, .tokens = 6, .q_heads = 28, .keys = 10'000, .kv_heads = 4}),
            RowKind::kSingleTokens);
  EXPECT_EQ(rows_of({.batch = 1, .tokens = 128, .q_heads = 14, .keys = 12'000, .kv_heads = 2}),
            RowKind::kTokens);
}

TEST(SingleRows, serve_chunks_of_very_few_row_tiles) {
  for (const int32_t dim : {64, 128, 256}) {
    EXPECT_EQ(rows_of({.batch = 1, .tokens = 256, .q_heads = 8, .keys = 8192, .head_dim = dim}),
              dim == 256 ? RowKind::kTokens : RowKind::kSingleTokens);
    EXPECT_EQ(rows_of({.batch = 1, .tokens = 128, .q_heads = 8, .keys = 20'000, .head_dim = dim}),
              dim == 64 ? RowKind::kSingleTokens : RowKind::kTokens);
  }
}

// 300 tokens of 24/8 heads of 256 over 4,000 keys: 67.8 us became 62.8; over 2,048 40.3 would be
// 44.9.
TEST(SingleRows, of_head_dim_256_are_chosen_by_the_time_of_all_row_tiles) {
  const auto rows = [](int32_t tokens, int32_t q_heads, int32_t keys) {
    return rows_of(
        {.batch = 1, .tokens = tokens, .q_heads = q_heads, .keys = keys, .head_dim = 256});
  };
  EXPECT_EQ(rows(300, 24, 4000), RowKind::kTokens);
  EXPECT_EQ(rows(300, 24, 2048), RowKind::kSingleTokens);
  EXPECT_EQ(rows(600, 8, 2048), RowKind::kTokens);  // 52.9 us became 40.2
  EXPECT_EQ(rows(200, 4, 6000), RowKind::kSingleTokens);
  // Under a causal mask over prompts the longest come first.
  EXPECT_EQ(rows(4000, 2, 4000), RowKind::kSingleTokens);
}

// Each row tile loads all keys: 100 tokens of 20/4 heads over 23,788 keys 52.8 us became 46.0.
TEST(SingleRows, of_head_dim_64_over_many_keys_are_larger) {
  const auto rows = [](int32_t tokens, int32_t q_heads, int32_t keys) {
    return rows_of(
        {.batch = 1, .tokens = tokens, .q_heads = q_heads, .keys = keys, .head_dim = 64});
  };
  EXPECT_EQ(rows(65, 32, 8192), RowKind::kSingleTokens);  // 29.1 us would be 30.8
  EXPECT_EQ(rows(65, 32, 32'768), RowKind::kTokens);      // 69.4 became 62.1
  EXPECT_EQ(rows(200, 8, 32'768), RowKind::kSingleTokens);
}

// Two CTAs a multiprocessor: 300 tokens of 8/1 heads over 2500 keys 23.0 us became 18.8; 512 over
// 20,000 57.7 would be 65.6.
TEST(SingleRows, of_head_dim_64_serve_chunks_of_few_row_tiles_over_few_keys) {
  EXPECT_EQ(rows_of({.batch = 1, .tokens = 300, .q_heads = 8, .keys = 2500, .head_dim = 64}),
            RowKind::kSingleTokens);
  EXPECT_EQ(rows_of({.batch = 1, .tokens = 512, .q_heads = 8, .keys = 20'000, .head_dim = 64}),
            RowKind::kTokens);
}

// 2 x 175 tokens of 16/16 heads over 36,948 keys: 208 us became 143 (head dim 96), 261 177 (128).
// Over 8,000 60.9 became 56.2 (128). 8 x 190 of 40/8 over 600: 43.3 would be 48.2 (128).
TEST(TallRows, serve_chunks_that_fill_one_of_them_and_begin_a_second_other_one) {
  for (const int32_t dim : {96, 128}) {
    const auto rows = [&](int32_t tokens) {
      return rows_of({.batch = 2,
                      .tokens = tokens,
                      .q_heads = 16,
                      .keys = 36'948,
                      .head_dim = dim,
                      .kv_heads = 16});
    };
    EXPECT_EQ(rows(128), RowKind::kTokens);
    EXPECT_EQ(rows(130), RowKind::kTallTokens);
    EXPECT_EQ(rows(192), RowKind::kTallTokens);
    EXPECT_NE(rows(193), RowKind::kTallTokens);
    EXPECT_EQ(rows_of({.batch = 2,
                       .tokens = 192,
                       .q_heads = 16,
                       .keys = 8000,
                       .head_dim = dim,
                       .kv_heads = 16}),
              RowKind::kTallTokens);
    EXPECT_NE(rows_of({.batch = 8, .tokens = 190, .q_heads = 40, .keys = 600, .head_dim = dim}),
              RowKind::kTallTokens);
  }
}

// Of 48 row tiles in two splits each 36 of 132 multiprocessors have none.
TEST(StreamKRows, serve_chunks_whose_row_tiles_leave_multiprocessors_idle) {
  const auto expect_shares = [](const Call& call, int32_t heads) {
    const Launch launch = launch_of(call);
    EXPECT_EQ(launch.rows, RowKind::kStreamKTokens) << call.tokens << " over " << call.keys;
    EXPECT_EQ(launch.heads, heads);
    EXPECT_EQ(launch.ctas, kMultiprocessors);
  };
  Call call{.batch = 1, .tokens = 200, .q_heads = 28, .keys = 9364, .kv_heads = 4};
  expect_shares(call, 7);
  call.head_dim = 256;
  expect_shares(call, 7);
  expect_shares({.batch = 1, .tokens = 300, .q_heads = 40, .keys = 12'000, .head_dim = 64}, 5);
  call.batch = 2;
  call.tokens = 300;
  call.keys = 3000;
  expect_shares(call, 7);
}

// 100 tokens of 40/8 heads over 8,000 keys took 45 us in splits, 51 in shares; 170 of 24/8 over
// 6,000 38, 43; without a mask 1,500 tokens of 24/8 heads 56, 58, 1,111 of 20/20 30, 38.
TEST(StreamKRows, are_left_where_splits_and_whole_row_tiles_are_as_fast) {
  EXPECT_EQ(rows_of({.batch = 1, .tokens = 100, .q_heads = 40, .keys = 8000}), RowKind::kTokens);
  EXPECT_EQ(rows_of({.batch = 1, .tokens = 170, .q_heads = 24, .keys = 6000}), RowKind::kTokens);
  EXPECT_NE(rows_of({.batch = 1, .tokens = 1500, .q_heads = 24, .is_causal = false}),
            RowKind::kStreamKTokens);
  EXPECT_NE(
      rows_of({.batch = 1, .tokens = 1111, .q_heads = 20, .is_causal = false, .kv_heads = 20}),
      RowKind::kStreamKTokens);
  // Loads take longest.
  EXPECT_EQ(rows_of({.batch = 4, .tokens = 56, .q_heads = 16, .keys = 31'269, .head_dim = 256}),
            RowKind::kTokens);
}

TEST(StreamKRows, need_rows_that_see_as_many_keys) {
  Call call{.batch = 1, .tokens = 200, .q_heads = 28, .keys = 9364, .kv_heads = 4};
  EXPECT_EQ(rows_of(call), RowKind::kStreamKTokens);
  call.tokens = 4000;  // the first rows see half
  EXPECT_NE(rows_of(call), RowKind::kStreamKTokens);
}

TEST(StreamKRows, are_not_chosen_where_the_caller_asks_for_something_else) {
  Call call{.batch = 1, .tokens = 200, .q_heads = 28, .keys = 9364, .kv_heads = 4};
  EXPECT_EQ(rows_of(call), RowKind::kStreamKTokens);
  for (const int32_t num_kv_splits : {1, 3}) {
    call.options.num_kv_splits = num_kv_splits;
    EXPECT_EQ(rows_of(call), RowKind::kTokens);
  }
  call.options = {};
  call.options.schedule = pagoda::Schedule::kQueue;
  EXPECT_EQ(rows_of(call), RowKind::kTokens);
  call.options = {};
  call.options.is_batch_invariant = true;
  EXPECT_EQ(rows_of(call), RowKind::kTokens);
  call.options = {};
  call.dtype = DType::kF8E4M3;  // has no such kernel
  EXPECT_EQ(rows_of(call), RowKind::kTokens);
}

// Splits that all have a CTA of their own.
TEST(SharedMerge, is_taken_from_four_splits_on) {
  const auto is_shared = [](const Call& call) {
    const Launch launch = launch_of(call);
    EXPECT_LE(launch.num_splits, 16);
    return launch.num_splits > 3;
  };
  EXPECT_TRUE(is_shared({.batch = 1, .tokens = 128, .q_heads = 8, .keys = 8192}));
  EXPECT_TRUE(
      is_shared({.batch = 1, .tokens = 128, .q_heads = 8, .keys = 20'000, .head_dim = 256}));
  EXPECT_TRUE(is_shared({.batch = 1, .tokens = 64, .q_heads = 8, .keys = 2048}));
  EXPECT_TRUE(is_shared({.batch = 1, .tokens = 512, .q_heads = 8, .keys = 8192}));
  EXPECT_FALSE(is_shared({.batch = 1, .tokens = 1024, .q_heads = 8, .keys = 8192}));
}

TEST(SingleRows, do_not_depend_on_the_batch_where_it_must_be_invariant) {
  Options options;
  options.is_batch_invariant = true;
  EXPECT_EQ(rows_of({.batch = 1, .tokens = 1000, .q_heads = 8, .options = options}),
            RowKind::kTokens);
}

TEST(SingleRows, leave_room_for_two_ctas_a_multiprocessor_at_head_dim_64) {
  EXPECT_EQ(launch_of({.batch = 1, .tokens = 2000, .q_heads = 8, .head_dim = 64}).ctas, 256);
  EXPECT_EQ(launch_of({.batch = 1, .tokens = 2000, .q_heads = 8, .head_dim = 256}).ctas,
            kMultiprocessors);
}

// 1 x 1000 tokens, 32/8 heads: 23.0 us, in two splits 32.5.
TEST(ShortRows, and_single_ones_of_few_keys_are_not_split) {
  for (const int32_t tokens : {500, 700, 1000, 1024}) {
    for (const int32_t heads : {8, 16, 32, 40}) {
      for (const bool is_causal : {false, true}) {
        const Launch launch = launch_of({.batch = 1,
                                         .tokens = tokens,
                                         .q_heads = heads,
                                         .is_causal = is_causal,
                                         .head_dim = 64});
        if (heads == 8) {
          EXPECT_EQ(launch.rows, RowKind::kSingleTokens);
        }
        if (is_causal) {
          EXPECT_NE(launch.rows, RowKind::kTokens);
          if (heads * tokens > 264 * 64) {
            EXPECT_EQ(launch.rows, RowKind::kShortTokens);
          }
        }
        EXPECT_EQ(launch.num_splits, 1) << tokens << " tokens, " << heads << " heads";
      }
    }
  }
}

TEST(ShortRows, do_not_depend_on_the_batch_where_it_must_be_invariant) {
  Options options;
  options.is_batch_invariant = true;
  EXPECT_EQ(rows_of({.batch = 16, .tokens = 512, .head_dim = 64, .options = options}),
            RowKind::kTokens);
}

// 8 heads, causal: 24.3 us, in two splits 28.0.
TEST(Splits, of_wide_rows_cost_twice_as_much) {
  const auto splits_of = [](int32_t tokens, int32_t keys) {
    core::Problem p = dense_problem(1, tokens, keys, DType::kBF16, 256);
    p.num_q_heads = 8;
    p.num_kv_heads = 2;
    const auto shape = std::ranges::find(kShapes, 256, &Shape::depth_qk);
    const auto plan = make_plan(*shape, p, kMultiprocessors, {});
    return plan->launches[plan->num_launches - 1].num_splits;
  };
  EXPECT_EQ(splits_of(640, 640), 1);
  EXPECT_GT(splits_of(640, 32'768), 1);
}

TEST(ShortRows, leave_room_for_two_ctas_a_multiprocessor) {
  const core::Problem p = dense_problem(16, 1024, 1024, DType::kBF16, 64);
  const auto plan = make_plan(kShapes[0], p, kMultiprocessors, {});
  EXPECT_EQ(plan->launches[plan->num_launches - 1].ctas, 2 * kMultiprocessors);
}

// 16 x 24 tokens over 2,048 keys, 32/8 heads: 87 us became 65; 8 x 129 over 4,096 189, 120.
TEST(PackedHeads, fill_row_tiles_that_tokens_of_one_head_leave_empty) {
  EXPECT_EQ(launch_of({.batch = 16, .tokens = 24, .keys = 2048}).heads, 4);
  const Launch chunks = launch_of({.batch = 8, .tokens = 129, .keys = 4096});
  EXPECT_EQ(chunks.rows, RowKind::kTallTokens);
  EXPECT_EQ(chunks.heads, 4);
  // 63 rows of a block's 64.
  const Launch sevenths = launch_of({.batch = 16, .tokens = 40, .q_heads = 56, .keys = 3000});
  EXPECT_EQ(sevenths.rows, RowKind::kTokens);  // of tall row tiles blocks have all 64
  EXPECT_EQ(sevenths.heads, 7);
  EXPECT_EQ(launch_of({.batch = 6, .tokens = 900, .q_heads = 24, .is_causal = false}).heads, 3);
}

TEST(PackedHeads, are_one_where_tokens_fill_the_row_tiles) {
  EXPECT_EQ(launch_of({.batch = 16, .tokens = 128, .keys = 2048}).heads, 1);
  EXPECT_EQ(
      launch_of({.batch = 2, .tokens = 700, .q_heads = 16, .keys = 6000, .kv_heads = 2}).heads, 1);
  EXPECT_EQ(launch_of({.batch = 16, .tokens = 24, .q_heads = 8, .keys = 2048}).heads, 1);
}

// 4 x 24 of d256 over 2,048 keys 42.2 us, packed 49.0.
TEST(PackedHeads, are_one_where_loads_take_longest) {
  EXPECT_EQ(launch_of({.batch = 4, .tokens = 24, .keys = 2048, .head_dim = 256}).heads, 1);
}

// us, keys loaded twice, once: 11 x 16 tokens of 32/16 heads over 3,639 keys 114, 95.5; 8 x 4 of
// 64/8 over 8,000 84.1, 79.4; 100 x 4 of 8/1 of 64 over 3,000 40.8, 37.2; 60 x 5 of 8/1 over 2,415
// 35.5, 36.3.
TEST(PackedHeads, are_all_where_loads_take_longest_though_it_takes_splits) {
  const Launch launch = launch_of({.batch = 11, .tokens = 16, .keys = 3639, .kv_heads = 16});
  EXPECT_EQ(launch.heads, 2);
  EXPECT_EQ(launch_of({.batch = 8, .tokens = 4, .q_heads = 64, .keys = 8000}).heads, 8);
  Call call{.batch = 100, .tokens = 4, .q_heads = 8, .keys = 3000, .head_dim = 64, .kv_heads = 1};
  EXPECT_EQ(launch_of(call).heads, 8);
  call = {.batch = 60, .tokens = 5, .q_heads = 8, .keys = 2415, .kv_heads = 1};
  EXPECT_EQ(launch_of(call).heads, 4);
}

// 68 tokens, 8/2 heads of 256, over 27,786 keys 90.7 us, packed 76.8; 100 tokens, 20/4 heads of 64,
// over 16,384 41.4, 38.8.
TEST(PackedHeads, are_several_for_a_small_gain_where_keys_are_many) {
  const Launch wide = launch_of(
      {.batch = 2, .tokens = 68, .q_heads = 8, .keys = 27'786, .head_dim = 256, .kv_heads = 2});
  EXPECT_EQ(wide.heads, 4);
  EXPECT_EQ(wide.num_splits, 11);
  const Launch narrow = launch_of(
      {.batch = 1, .tokens = 100, .q_heads = 20, .keys = 16'384, .head_dim = 64, .kv_heads = 4});
  EXPECT_EQ(narrow.heads, 5);
}

// 4,096 tokens of 64/8 heads, d64, 62.5 us, packed 64.8.
TEST(PackedHeads, are_one_in_windows) {
  const Mask window = Mask::window(127, 0);
  const Call call{.batch = 1, .tokens = 4096, .q_heads = 64, .head_dim = 64, .mask = &window};
  EXPECT_EQ(launch_of(call).heads, 1);
}

TEST(PackedHeads, are_one_where_the_batch_must_be_invariant) {
  Options options;
  options.is_batch_invariant = true;
  Call call{.batch = 16, .tokens = 129, .keys = 2048, .options = options};
  EXPECT_EQ(launch_of(call).heads, 1);
  call.dtype = DType::kF8E4M3;
  EXPECT_EQ(launch_of(call).heads, 1);
}

// The kernel of one head is 2 to 3 % faster: 8 x 2,048 full 301 us, 310; 1 x 256 tokens of 8/1
// heads over 32,000 keys 47.7, 48.4. But 8 x 150 of 24/8 heads over 4,430 keys 124, 89.8, 3 x 700
// 37.7, 34.1.
TEST(PackedHeads, of_e4m3_queries_have_a_kernel_of_their_own) {
  Call call{.batch = 8, .tokens = 150, .q_heads = 24, .keys = 4430, .dtype = DType::kF8E4M3};
  EXPECT_EQ(launch_of(call).rows, RowKind::kGroupTokens);
  EXPECT_EQ(launch_of(call).heads, 3);
  call = {.batch = 3, .tokens = 700, .dtype = DType::kF8E4M3};
  EXPECT_EQ(launch_of(call).rows, RowKind::kGroupTokens);
  call = {.batch = 8, .tokens = 2048, .is_causal = false, .dtype = DType::kF8E4M3};
  EXPECT_EQ(launch_of(call).rows, RowKind::kTokens);
  call = {.batch = 1,
          .tokens = 256,
          .q_heads = 8,
          .keys = 32'000,
          .dtype = DType::kF8E4M3,
          .kv_heads = 1};
  EXPECT_EQ(launch_of(call).rows, RowKind::kTokens);
  EXPECT_EQ(launch_of(call).heads, 1);
}

// Partial results have a slot for each block of a row tile, rows of tokens that exist.
TEST(PackedHeads, share_merges_of_many_splits) {
  const Launch launch = launch_of({.batch = 1, .tokens = 48, .q_heads = 40, .keys = 20'000});
  EXPECT_EQ(launch.heads, 5);
  EXPECT_EQ(launch.num_splits, 8);
}

// Head dim 64, us by short row tiles, those of one consumer, of three: 13 x 2 to 48 tokens of 40/8
// heads over up to 6,303 keys 40.1, 41.1, 46.0; 6 x 4 to 47 of 16/16 over 856 16.7, 16.0, 16.4; 18
// tokens over up to 8,288 keys beside 671, 8/1 heads 49.4, 57.0, 44.0.
TEST(UnequalLengths, have_the_row_tiles_that_are_done_first) {
  EXPECT_EQ(
      rows_of(
          {.batch = 13, .tokens = 48, .q_heads = 40, .keys = 6303, .head_dim = 64, .rows = 327}),
      RowKind::kShortTokens);
  EXPECT_EQ(rows_of({.batch = 6,
                     .tokens = 47,
                     .q_heads = 16,
                     .keys = 856,
                     .head_dim = 64,
                     .kv_heads = 16,
                     .rows = 175}),
            RowKind::kSingleTokens);
  EXPECT_EQ(rows_of({.batch = 19,
                     .tokens = 671,
                     .q_heads = 8,
                     .keys = 8288,
                     .head_dim = 64,
                     .kv_heads = 1,
                     .rows = 1997}),
            RowKind::kTokens);
  // 17 x 6 to 48 tokens of 20/4 heads of 128 over up to 6,723 keys: short row tiles 50.9, one
  // consumer 54.7, two 45.3.
  EXPECT_EQ(
      rows_of({.batch = 17, .tokens = 48, .q_heads = 20, .keys = 6723, .kv_heads = 4, .rows = 537}),
      RowKind::kTokens);
}

}  // namespace
}  // namespace pagoda::mha_sm90
