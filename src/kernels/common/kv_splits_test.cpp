// num_kv_splits: the numbers that were fastest on an H200 (mha_sm90/notes/split_rows.md).
#include <cmath>
#include <gtest/gtest.h>

#include "kernels/common/call_arguments.hpp"
#include "pagoda/mask.hpp"

namespace pagoda::kernels {
namespace {

constexpr int32_t kMultiprocessors = 132, kTileRows = 128, kTileKeys = 128;

struct Call {
  int32_t batch, tokens, keys, q_heads, kv_heads;
  bool is_ragged = true, is_causal = false;
  int32_t missing = 0;  // rows fewer than if all sequences had as many
};

// body(problem, grid)
template <class Body>
auto with_grid(const Call& call, const Body& body) {
  const Mask mask = call.is_causal ? Mask::causal() : Mask::none();
  core::Problem p;
  p.batch = call.batch;
  p.num_q_heads = call.q_heads;
  p.num_kv_heads = call.kv_heads;
  p.group = call.q_heads / call.kv_heads;
  p.head_dim_qk = p.head_dim_vo = 128;
  p.is_ragged = call.is_ragged;
  p.has_host_lengths = false;
  p.total_q = call.batch * call.tokens - call.missing;
  p.max_seqlen_q = call.tokens;
  p.max_seqlen_kv = p.max_seqlen_kv_bound = call.keys;
  p.q.dtype = p.k.dtype = p.v.dtype = p.out.dtype = DType::kBF16;
  p.mask = mask.nodes();
  // Never read: the number follows from shapes.
  const int32_t cu_rows[1] = {};
  schedule::TileGrid grid = tile_grid(p, 1, kTileRows, int64_t{32} << 20);
  if (call.is_ragged) grid.cu_rows = static_cast<const int32_t*>(cu_rows);
  if (call.is_ragged) grid.most_rows = call.tokens;
  return body(p, grid);
}
KVSplits splits_of(const Call& call, bool may_share = false, int32_t ctas_per_sm = 1) {
  return with_grid(call, [&](const core::Problem& p, const schedule::TileGrid& grid) {
    const KVSplits splits =
        kv_splits(p, grid, kMultiprocessors,
                  {.BN = kTileKeys, .may_share = may_share, .ctas_per_sm = ctas_per_sm});
    // Otherwise all row tiles are split alike, as those of kernels that can't do otherwise.
    const int32_t of_all = num_kv_splits(p, grid, kMultiprocessors, kTileKeys);
    if (splits.num_whole == 0 && !may_share) {
      EXPECT_EQ(splits.num_splits, of_all);
    }
    return splits;
  });
}
int32_t num_splits(const Call& call) { return splits_of(call).num_splits; }

TEST(KVSplits, few_row_tiles_over_many_keys_fill_one_wave) {
  EXPECT_EQ(num_splits({1, 256, 131072, 8, 1}), 8);  // 16 row tiles
  EXPECT_EQ(num_splits({1, 512, 32768, 8, 1}), 4);   // 32
  EXPECT_EQ(num_splits({.batch = 1,
                        .tokens = 128,
                        .keys = 32768,
                        .q_heads = 32,
                        .kv_heads = 8,
                        .is_causal = true}),
            4);
  EXPECT_EQ(num_splits({.batch = 1,
                        .tokens = 300,
                        .keys = 12000,
                        .q_heads = 14,
                        .kv_heads = 2,
                        .is_causal = true}),
            3);
}

// Sequences of 1 to 48 tokens whose keys differ as well: those of the longest are not waited for.
// 29 over 85 to 3,650 keys, 14/2 heads: without splits 48.5 us, in two 39.5, in three 37.7 (H200).
TEST(KVSplits, of_unequal_lengths_are_more_where_the_longest_would_be_waited_for) {
  const auto splits = [](const Call& call, bool may_have_least_tiles) {
    return with_grid(call, [&](const core::Problem& p, const schedule::TileGrid& grid) {
      return kv_splits(p, grid, kMultiprocessors,
                       {.BN = kTileKeys, .may_have_least_tiles = may_have_least_tiles});
    });
  };
  const Call unequal{.batch = 29,
                     .tokens = 48,
                     .keys = 3650,
                     .q_heads = 4,
                     .kv_heads = 2,
                     .is_causal = true,
                     .missing = 29 * 23};
  Call equal = unequal, prompts = unequal;
  equal.missing = 100;  // a tenth at most
  prompts.keys = 95;    // fewer than two for each token
  EXPECT_EQ(splits(unequal, true).num_splits, 2);
  EXPECT_LT(splits(unequal, true).time, splits(equal, true).time);
  EXPECT_EQ(splits(unequal, false).num_splits, splits(equal, false).num_splits);
  EXPECT_EQ(splits(prompts, true).num_splits, 1);
  // Many row tiles, whose work is divided evenly without splits: 66 over up to 5,845 keys, 40/8
  // heads: 116.1 us, in two 118.3.
  const Call many{.batch = 66,
                  .tokens = 48,
                  .keys = 5845,
                  .q_heads = 8,
                  .kv_heads = 8,
                  .is_causal = true,
                  .missing = 66 * 23};
  EXPECT_EQ(splits(many, true).num_splits, 1);
}

// A merge by all CTAs hardly takes longer for more splits, and a split may have two KV tiles.
TEST(KVSplits, are_more_where_their_ctas_merge_together) {
  const Call chunk{1, 128, 8192, 8, 2};  // 8 row tiles
  EXPECT_EQ(splits_of(chunk).num_splits, 8);
  EXPECT_EQ(splits_of(chunk, true).num_splits, 16);
  const Call short_chunk{1, 64, 2048, 8, 8};
  EXPECT_EQ(splits_of(short_chunk).num_splits, 4);
  EXPECT_EQ(splits_of(short_chunk, true).num_splits, 8);
  // Small gains only where each has a multiprocessor of its own.
  EXPECT_EQ(splits_of(short_chunk, true, 4).num_splits, 4);
}

// 32 row tiles: four splits of each have a CTA of their own, five do not.
TEST(KVSplits, are_as_many_where_ctas_have_several_work_tiles) {
  const Call chunk{1, 512, 32768, 8, 1};
  EXPECT_EQ(splits_of(chunk, true).num_splits, splits_of(chunk).num_splits);
  schedule::TileGrid grid{.batch = 1, .num_heads = 32, .tile_rows = 128, .rows = 128};
  grid.num_splits = 5;
  EXPECT_TRUE(shares_merge(grid, 160));
  EXPECT_FALSE(shares_merge(grid, 159));
  grid.num_splits = 4;
  EXPECT_TRUE(shares_merge(grid, 160));
  grid.num_splits = 3;
  EXPECT_FALSE(shares_merge(grid, 160));
  grid.num_splits = 5;
  grid.num_whole = 1;
  EXPECT_FALSE(shares_merge(grid, 160));
}

TEST(KVSplits, a_ragged_grid_is_not_larger_than_its_tiles) {
  Call call{1, 256, 131072, 8, 1};
  const int32_t ragged = num_splits(call);
  call.is_ragged = false;
  EXPECT_EQ(num_splits(call), ragged);
}

TEST(KVSplits, full_waves_and_short_keys_are_not_split) {
  EXPECT_EQ(num_splits({.batch = 8, .tokens = 2048, .keys = 2048, .q_heads = 16, .kv_heads = 16}),
            1);
  EXPECT_EQ(num_splits({1, 128, 256, 8, 8}), 1);
}

// Of the halves of 80 row tiles, whose rows see 1,920 to 2,560 keys, some CTAs would have two.
TEST(KVSplits, of_a_chunk_are_not_a_few_more_than_ctas) {
  Call chunk{1, 640, 2560, 16, 8};
  chunk.is_causal = true;
  EXPECT_EQ(num_splits(chunk), 1);
  chunk.q_heads = 12;  // 60 row tiles: 120 halves
  chunk.kv_heads = 4;
  EXPECT_EQ(num_splits(chunk), 2);
}

TEST(KVSplits, causal_prefill_is_balanced_by_its_queue) {
  for (const int32_t tokens : {2048, 4096, 16384}) {
    EXPECT_EQ(num_splits({.batch = 1,
                          .tokens = tokens,
                          .keys = tokens,
                          .q_heads = 8,
                          .kv_heads = 1,
                          .is_causal = true}),
              1)
        << tokens;
  }
}

TEST(KVSplits, the_row_tiles_of_a_last_wave_are_split_alone) {
  // 133 row tiles of 32 KV tiles: one wave, and a row tile by 4 CTAs of 8 KV tiles each.
  KVSplits splits = splits_of({1, 133 * kTileRows, 4096, 1, 1});
  EXPECT_EQ(splits.num_whole, 132);
  EXPECT_EQ(splits.num_splits, 4);
  EXPECT_NEAR(splits.waves, 1 + (8 + 2 + 2 + 4) / 34.0, 1e-9);
  // Twelve of 144.
  splits = splits_of({.batch = 1, .tokens = 2304, .keys = 2304, .q_heads = 8, .kv_heads = 8});
  EXPECT_EQ(splits.num_whole, 132);
  EXPECT_EQ(splits.num_splits, 3);
  // Half a wave is left of 10.5: two splits each.
  splits = splits_of({2, 693 * kTileRows, 8192, 1, 1});
  EXPECT_EQ(splits.num_whole, 1320);
  EXPECT_EQ(splits.num_splits, 2);
}

double shares_time(const Call& call, bool is_bisected = false) {
  return with_grid(call, [&](const core::Problem& p, schedule::TileGrid grid) {
    if (is_bisected) grid.most_rows = 0;
    return time_of_equal_shares(p, grid, kMultiprocessors, {.BN = kTileKeys});
  });
}

// 144 row tiles of chunks of 204 tokens over 620 keys, on 132 CTAs: some take two, each of at least
// the 416 keys that the first token sees. Of 124 none does.
TEST(KVSplits, of_more_row_tiles_than_ctas_take_whole_ones) {
  Call call{72, 204, 620, 1, 1};
  call.is_causal = true;
  KVSplits splits = splits_of(call);
  EXPECT_EQ(splits.num_splits, 1);
  EXPECT_GE(splits.rounds_time, 2 * (416 / 128.0 + 2));
  EXPECT_LT(splits.time, splits.rounds_time);
  call.batch = 62;
  splits = splits_of(call);
  EXPECT_EQ(splits.rounds_time, splits.time);
}

// 48 row tiles of 64 KV tiles: 23.3 each for 132 CTAs, of two row tiles at most, in two parts; and
// a row tile has up to four parts.
TEST(EqualShares, take_an_even_part_of_the_key_tiles) {
  const Call chunk{.batch = 1, .tokens = 256, .keys = 8192, .q_heads = 24, .kv_heads = 4};
  const double share = 48.0 / kMultiprocessors;
  EXPECT_NEAR(shares_time(chunk), 64 * share + 2 * (share + 1) + 2 * 2 + 4, 1e-9);
  EXPECT_LT(shares_time(chunk), splits_of(chunk).time);
}

TEST(EqualShares, are_of_row_tiles_that_see_as_many_keys_from_l2_alone) {
  Call call{.batch = 1, .tokens = 256, .keys = 8192, .q_heads = 24, .kv_heads = 4};
  EXPECT_TRUE(std::isfinite(shares_time(call)));
  EXPECT_FALSE(std::isfinite(shares_time(call, true)));  // their number is not known
  call.is_causal = true;
  EXPECT_TRUE(std::isfinite(shares_time(call)));
  call.tokens = 4096;  // the first rows see half of the keys
  EXPECT_FALSE(std::isfinite(shares_time(call)));
  call.tokens = 256;
  call.keys = 65'536;  // 134 MB of keys and values, which six row tiles read
  EXPECT_FALSE(std::isfinite(shares_time(call)));
  call.tokens = 128;
  call.kv_heads = 24;  // one does
  EXPECT_TRUE(std::isfinite(shares_time(call)));
  call.keys = 1024;  // 1.5 KV tiles each
  EXPECT_FALSE(std::isfinite(shares_time(call)));
}

TEST(KVSplits, a_last_wave_that_is_nearly_full_or_short_is_not_split) {
  EXPECT_EQ(num_splits({1, 260 * kTileRows, 8192, 1, 1}), 1);  // 128 of 132
  EXPECT_EQ(num_splits({1, 133 * kTileRows, 512, 1, 1}), 1);   // a split has 4 KV tiles
  EXPECT_EQ(num_splits({1, 264 * kTileRows, 8192, 1, 1}), 1);  // none is left
  EXPECT_EQ(splits_of({1, 264 * kTileRows, 8192, 1, 1}).waves, 2);
}

}  // namespace
}  // namespace pagoda::kernels
