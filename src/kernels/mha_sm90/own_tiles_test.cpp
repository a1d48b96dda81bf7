// Which KV tiles of a consumer need no maxima, against the keys that every row sees.
#include "kernels/mha_sm90/own_tiles.hpp"

#include <cstdint>
#include <gtest/gtest.h>

#include "kernels/mha_sm90/instances.hpp"

namespace pagoda::mha_sm90 {
namespace {

using Config = Instance<arch::BFloat16, 128, 128, RowKind::kTokens, ScoreClass::kPlain>;
using ConfigE4M3 = Instance<arch::Float8E4M3, 128, 128, RowKind::kTokens, ScoreClass::kPlain>;
constexpr int32_t kTile = Config::tile.BN;
static_assert(ConfigE4M3::tile.BN == kTile);

struct Rows {
  int32_t keys, position;  // of the sequence, and of its row 0
  int32_t valid_tokens = 2 * kRows;
};

Work work_of(const AttentionParams& params, const Rows& rows) {
  Work work;
  work.num_tokens = 2 * kRows;
  work.valid_tokens = rows.valid_tokens;
  work.rows = {.sequence = 0,
               .seqlen_kv = rows.keys,
               .q_position = rows.position,
               .first_row = 0,
               .num_rows = rows.valid_tokens};
  work.walk = params.mask.interval.kv_tiles(work.rows, {kTile, 1});
  return work;
}

AttentionParams params_of(const mask::IntervalRule& rule) {
  AttentionParams params;
  params.mask.interval.rule = rule;
  params.row_block = {1, kRows, arch::Divisor(1)};
  return params;
}

// Every row that sees a key sees one in a tile from maxima_begin on. Returns the tiles before.
template <class Instance = Config>
int32_t expect_pivots(const AttentionParams& params, const Work& work, int consumer) {
  const OwnTiles own = OwnTilesOf<Instance>::find(params, work, consumer);
  for (int32_t i = 0; i < kRows; ++i) {
    const int32_t row = consumer * kRows + i;
    if (row >= work.valid_tokens) break;
    const mask::Interval keys = params.mask.interval.visible(work.rows, row);
    if (keys.empty()) continue;
    if (keys.hi <= work.walk.start_column) continue;  // none of this split
    const int32_t last_tile = (keys.hi - 1 - work.walk.start_column) / kTile;
    EXPECT_GE(last_tile, own.maxima_begin) << "row " << row;
  }
  if (own.num_tiles > 0) {
    EXPECT_GE(own.maxima_begin, 0);
    EXPECT_LT(own.maxima_begin, own.num_tiles);
  }
  return own.maxima_begin;
}

TEST(OwnTiles, need_maxima_until_every_row_has_a_pivot) {
  const mask::IntervalRule kRules[] = {
      {}, mask::IntervalRule{.right = 0}, mask::IntervalRule{.left = 300, .right = 0}};
  for (const mask::IntervalRule& rule : kRules) {
    const AttentionParams params = params_of(rule);
    for (int32_t keys = 1; keys < 700; keys += 13) {
      for (int32_t position = -70; position < keys; position += 7) {
        const Work work = work_of(params, {keys, position, 100});
        for (const int consumer : {0, 1}) {
          expect_pivots(params, work, consumer);
          expect_pivots<ConfigE4M3>(params, work, consumer);
        }
      }
    }
  }
}

TEST(OwnTiles, leave_out_maxima_of_all_but_the_last_tiles) {
  const AttentionParams full = params_of({});
  EXPECT_EQ(expect_pivots(full, work_of(full, {1024, 0}), 0), 7);
  EXPECT_EQ(expect_pivots(full, work_of(full, {1025, 0}), 0), 8);
  // Row 0 sees the keys up to 511, the last of tile 3, and none of tile 4.
  const AttentionParams causal = params_of({.right = 0});
  EXPECT_EQ(expect_pivots(causal, work_of(causal, {1024, 511}), 0), 3);
  EXPECT_EQ(expect_pivots(causal, work_of(causal, {1024, 512}), 0), 4);
}

// A pivot of fewer keys would often be too small for e4m3 P.
TEST(OwnTiles, e4m3_rows_have_pivots_from_half_a_tile_or_more) {
  const auto begin = [](const AttentionParams& params, const Rows& rows) {
    return expect_pivots<ConfigE4M3>(params, work_of(params, rows), 0);
  };
  const AttentionParams causal = params_of({.right = 0});
  EXPECT_EQ(begin(causal, {1024, 511}), 3);  // row 0 sees 128 keys of tile 3
  EXPECT_EQ(begin(causal, {1024, 575}), 4);  // 64 keys of tile 4
  EXPECT_EQ(begin(causal, {1024, 574}), 3);  // 63
  EXPECT_EQ(begin(causal, {1024, 12}), 0);
  const AttentionParams full = params_of({});
  EXPECT_EQ(begin(full, {1025, 0}), 7);
  EXPECT_EQ(begin(full, {1024, 0}), 7);
}

TEST(OwnTiles, all_need_maxima_that_the_call_wants) {
  AttentionParams params = params_of({});
  float row_max = 0;
  params.row_max = &row_max;
  EXPECT_EQ(expect_pivots(params, work_of(params, {1024, 0}), 0), 0);
}

// In a chunked mask the last keys of the first rows may come before those of the split.
TEST(OwnTiles, all_need_maxima_in_a_split_that_the_first_row_does_not_see) {
  const AttentionParams chunked = params_of({.chunk = 1000});
  Work work = work_of(chunked, {2000, 980});
  ASSERT_EQ(work.walk.start_column, 0);
  work.walk = work.walk.part(10 * kTile, 2000);
  EXPECT_EQ(expect_pivots(chunked, work, 0), 0);
  EXPECT_EQ(expect_pivots<ConfigE4M3>(chunked, work, 0), 0);
}

// Rows before the first key see none, and the rows after them may have their only key in any tile.
TEST(OwnTiles, all_need_maxima_where_the_first_row_sees_no_key) {
  const AttentionParams causal = params_of({.right = 0});
  EXPECT_EQ(expect_pivots(causal, work_of(causal, {300, -3}), 0), 0);
}

}  // namespace
}  // namespace pagoda::mha_sm90
