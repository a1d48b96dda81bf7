// The parts of equal shares: every KV tile of every row tile once, in order, in shares that differ
// by no more than rounding.
#include "schedule/equal_shares.hpp"

#include <cstdint>
#include <gtest/gtest.h>
#include <random>
#include <set>
#include <vector>

namespace pagoda::schedule {
namespace {

struct Shares {
  int32_t row_tiles, ctas;
  std::vector<int32_t> kv_tiles;  // of each row tile
};

// Checks all parts and returns the KV tiles of each CTA.
std::vector<int64_t> check(const Shares& of) {
  const EqualShares shares(of.row_tiles, of.ctas, arch::Divisor(of.ctas));
  std::vector<int64_t> work(static_cast<size_t>(of.ctas));
  std::vector<std::vector<SharePart>> parts(static_cast<size_t>(of.row_tiles));
  for (int32_t cta = 0; cta < of.ctas; ++cta) {
    EXPECT_LT(shares.first_tile(cta), shares.end_tile(cta));
    for (int32_t tile = shares.first_tile(cta); tile < shares.end_tile(cta); ++tile) {
      const auto i = static_cast<size_t>(tile);
      const SharePart part = shares.part(tile, cta, of.kv_tiles[i]);
      if (part.begin == part.end) continue;
      parts[i].push_back(part);
      work[static_cast<size_t>(cta)] += part.end - part.begin;
    }
  }
  std::set<int32_t> slots;
  for (size_t i = 0; i < parts.size(); ++i) {
    int32_t next = 0;
    for (size_t split = 0; split < parts[i].size(); ++split) {
      const SharePart& part = parts[i][split];
      EXPECT_EQ(part.begin, next);
      EXPECT_LT(part.begin, part.end);
      next = part.end;
      EXPECT_EQ(part.num_splits, static_cast<int32_t>(parts[i].size()));
      if (part.num_splits == 1) continue;
      EXPECT_EQ(part.split, static_cast<int32_t>(split));
      EXPECT_EQ(part.first_slot, parts[i][0].first_slot);
      const int32_t slot = part.first_slot + part.split;
      EXPECT_TRUE(slots.insert(slot).second) << "slot " << slot;
      EXPECT_GE(slot, 0);
      EXPECT_LT(slot, of.row_tiles + of.ctas);
    }
    EXPECT_EQ(next, of.kv_tiles[i]) << "row tile " << i;
  }
  return work;
}

TEST(EqualShares, hold_every_kv_tile_once) {
  std::mt19937 rng(1);
  const auto below = [&](uint32_t n) { return static_cast<int32_t>(rng() % n); };
  for (int round = 0; round < 2000 && !testing::Test::HasFailure(); ++round) {
    Shares of{.row_tiles = 1 + below(300), .ctas = 1 + below(300), .kv_tiles = {}};
    const int32_t most = round % 3 == 0 ? 4 : 1 + below(2000);
    for (int32_t i = 0; i < of.row_tiles; ++i) {
      of.kv_tiles.push_back(1 + below(static_cast<uint32_t>(most)));
    }
    SCOPED_TRACE(testing::Message() << of.row_tiles << " row tiles, " << of.ctas << " CTAs");
    check(of);
  }
}

TEST(EqualShares, are_equal_where_row_tiles_have_as_many_kv_tiles) {
  for (const auto& [row_tiles, ctas, kv_tiles] :
       {std::tuple{48, 132, 147}, {56, 132, 74}, {200, 132, 33}, {131, 132, 40}, {1, 7, 7}}) {
    const auto work = check({row_tiles, ctas, std::vector<int32_t>(size_t(row_tiles), kv_tiles)});
    const double mean = double(row_tiles) * kv_tiles / ctas;
    for (const int64_t tiles : work) {
      EXPECT_NEAR(static_cast<double>(tiles), mean, 2) << row_tiles;  // a limit rounds by up to 1
    }
  }
}

TEST(EqualShares, of_few_kv_tiles_leave_row_tiles_whole) {
  const EqualShares shares(4, 6, arch::Divisor(6));
  EXPECT_EQ(shares.part(0, 0, 1).num_splits, 1);
  EXPECT_EQ(shares.part(0, 0, 1).end, 1);
  EXPECT_EQ(shares.part(0, 1, 1).end, 0);
  EXPECT_EQ(shares.part(0, 1, 2).begin, 1);  // two KV tiles are one for each share
}

}  // namespace
}  // namespace pagoda::schedule
