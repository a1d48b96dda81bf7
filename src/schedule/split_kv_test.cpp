// The parts cover the visible keys once, in whole KV tiles.
#include "schedule/split_kv.hpp"

#include <algorithm>
#include <cstdint>
#include <gtest/gtest.h>
#include <random>

#include "mask/interval_mask.hpp"

namespace pagoda::schedule {
namespace {

void expect_cover(const SplitKV& split, int32_t parts, int32_t tile_keys) {
  ASSERT_LE(split.num_parts, parts);
  int32_t next = split.begin;
  for (int32_t i = 0; i < parts + 3; ++i) {
    const mask::Interval part = split.part(i);
    ASSERT_EQ(part.lo, next);
    ASSERT_LE(part.lo, part.hi);
    ASSERT_EQ(part.empty(), i >= split.num_parts);
    if (part.hi != split.end) {
      ASSERT_EQ((part.hi - split.begin) % tile_keys, 0);
    }
    next = part.hi;
  }
  ASSERT_EQ(next, split.end);
}

TEST(SplitKV, parts_cover_the_range_without_overlap) {
  std::mt19937 rng(1);
  for (int i = 0; i < 3000; ++i) {
    const auto begin = static_cast<int32_t>(rng() % 1000);
    const auto keys = static_cast<int32_t>(rng() % (i % 2 == 0 ? 100 : 20000));
    const auto parts = static_cast<int32_t>(1 + rng() % 140);
    const auto tile_keys = static_cast<int32_t>(1 + rng() % 256);
    expect_cover(split_kv(begin, begin + keys, parts, tile_keys), parts, tile_keys);
    if (HasFatalFailure()) FAIL() << begin << " " << keys << " " << parts << " " << tile_keys;
  }
}

TEST(SplitKV, parts_have_the_least_number_of_tiles_or_the_parts_would_be_too_many) {
  std::mt19937 rng(2);
  for (int i = 0; i < 3000; ++i) {
    const auto begin = static_cast<int32_t>(rng() % 1000);
    const auto keys = static_cast<int32_t>(1 + rng() % (i % 2 == 0 ? 500 : 20000));
    const auto parts = static_cast<int32_t>(1 + rng() % 20);
    const auto tile_keys = static_cast<int32_t>(1 + rng() % 256);
    const auto least = static_cast<int32_t>(1 + rng() % 30);
    const SplitKV split = split_kv(begin, begin + keys, parts, tile_keys, least);
    expect_cover(split, parts, tile_keys);
    const int32_t tiles = (keys - 1) / tile_keys + 1;
    const int32_t of_parts = (tiles - 1) / parts + 1;
    EXPECT_EQ(split.part_keys, std::max(least, of_parts) * tile_keys);
    if (HasFailure()) {
      FAIL() << begin << " " << keys << " " << parts << " " << tile_keys << " " << least;
    }
  }
  // The longest sequence has all parts, one of a third of its keys one.
  EXPECT_EQ(split_kv(0, 5300, 3, 100, 18).num_parts, 3);
  EXPECT_EQ(split_kv(0, 1800, 3, 100, 18).num_parts, 1);
  EXPECT_EQ(split_kv(0, 1801, 3, 100, 18).num_parts, 2);
}

TEST(SplitKV, nothing_visible_gives_empty_parts) {
  const SplitKV split = split_kv(640, 640, 8, 64);
  EXPECT_EQ(split.num_parts, 0);
  for (int32_t i = 0; i < 8; ++i) EXPECT_TRUE(split.part(i).empty());
}

TEST(SplitKV, the_longest_ranges_do_not_overflow) {
  expect_cover(split_kv(0, INT32_MAX, 128, 256), 128, 256);
  expect_cover(split_kv(1, INT32_MAX, 1, 256), 1, 256);
  expect_cover(split_kv(5, INT32_MAX, 7, 1 << 30), 7, 1 << 30);
}

TEST(SplitKV, parts_of_a_window_hold_its_keys_and_no_others) {
  // 512 of 1025 keys are visible; parts sized by the cache would be mostly empty.
  const mask::IntervalMask window{.rule = {.left = 511, .right = 0}};
  const mask::RowTile tile{
      .sequence = 0, .seqlen_kv = 1025, .q_position = 1024, .first_row = 0, .num_rows = 1};
  const mask::KVTileRange walk = window.kv_tiles(tile, mask::tile_shape(64, 16));
  const SplitKV split = split_kv(walk.start_column, walk.end_column, 4, walk.tile_keys);
  EXPECT_EQ(split.begin, 512);
  EXPECT_EQ(split.end, 1025);
  ASSERT_EQ(split.num_parts, 3);  // 9 tiles: 3 each
  int32_t tiles = 0;
  for (int32_t i = 0; i < 4; ++i) {
    const mask::Interval part = split.part(i);
    const mask::KVTileRange own = walk.part(part.lo, part.hi);
    EXPECT_EQ(own.num_tiles == 0, i == 3);
    tiles += own.num_tiles;
  }
  EXPECT_EQ(tiles, walk.num_tiles);
}

}  // namespace
}  // namespace pagoda::schedule
