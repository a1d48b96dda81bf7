// whole_row_tiles: which batches of equal lengths are divided without a split.
#include "kernels/common/stream_k_start.hpp"

#include <gtest/gtest.h>

#include "core/int_math.hpp"

namespace pagoda::kernels {
namespace {

int32_t tiles_per_cta(int32_t row_tiles, int32_t kv_tiles, int32_t ctas) {
  const int32_t least = core::ceil_div(row_tiles * kv_tiles, ctas);
  return whole_row_tiles(least, row_tiles, kv_tiles, ctas);
}

TEST(WholeRowTiles, are_taken_where_nearly_all_ctas_get_some) {
  EXPECT_EQ(tiles_per_cta(512, 64, 264), 2 * 64);   // 256 CTAs work
  EXPECT_EQ(tiles_per_cta(256, 64, 264), 64);       // 256
  EXPECT_EQ(tiles_per_cta(1024, 16, 264), 4 * 16);  // 256
  EXPECT_EQ(tiles_per_cta(128, 128, 132), 128);     // 128
}

TEST(WholeRowTiles, are_split_where_ctas_would_have_none) {
  EXPECT_EQ(tiles_per_cta(320, 64, 264), 78);    // 160 CTAs would work
  EXPECT_EQ(tiles_per_cta(1600, 64, 264), 388);  // 229
  EXPECT_EQ(tiles_per_cta(128, 128, 264), 63);   // 128
  EXPECT_EQ(tiles_per_cta(1, 100, 132), 1);
}

// Of 21 and 14 KV tiles, 132 CTAs: 116 and 110 row tiles are not split for two and three of them,
// 90 row tiles of 90 are.
TEST(WholeRowTiles, are_taken_where_a_split_takes_longer) {
  const auto found = [](int32_t row_tiles, int32_t kv_tiles) {
    return whole_row_tiles(core::ceil_div(row_tiles * kv_tiles, 132), row_tiles, kv_tiles, 132, 12);
  };
  EXPECT_EQ(found(116, 21), 21);
  EXPECT_EQ(found(110, 14), 14);
  EXPECT_EQ(found(90, 90), 62);
  EXPECT_EQ(found(132 + 66, 24), 2 * 24);  // of 36 each
  EXPECT_EQ(found(132 + 66, 26), 39);
}

TEST(WholeRowTiles, leave_at_most_a_sixteenth_idle_and_cover_the_batch) {
  for (int32_t ctas : {6, 8, 132, 264}) {
    for (int32_t row_tiles = 1; row_tiles < 2000; ++row_tiles) {
      for (int32_t kv_tiles : {1, 2, 7, 64}) {
        const int32_t least = core::ceil_div(row_tiles * kv_tiles, ctas);
        const int32_t found = whole_row_tiles(least, row_tiles, kv_tiles, ctas);
        ASSERT_GE(found, least);
        if (found == least) continue;
        ASSERT_EQ(found % kv_tiles, 0);
        const int32_t used = core::ceil_div(row_tiles * kv_tiles, found);
        ASSERT_GE(16 * used, 15 * ctas) << row_tiles << " x " << kv_tiles;
      }
    }
  }
}

}  // namespace
}  // namespace pagoda::kernels
