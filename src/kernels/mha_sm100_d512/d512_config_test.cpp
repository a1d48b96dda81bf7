// The configuration agrees with the sizes that Modular documents for depth 256 and 512.
#include <gtest/gtest.h>

#include "kernels/mha_sm100_d512/config.hpp"

namespace pagoda::mha_sm100_d512 {
namespace {

TEST(TileConfig, depth_256_has_the_documented_sizes) {
  const TileConfig tile = tile_of(2, 256, ScoreClass::kPlain);
  EXPECT_EQ(tile.fault(), nullptr);
  EXPECT_EQ(tile.pair_rows(), 256);
  EXPECT_EQ(tile.BN, 128);
  EXPECT_EQ(tile.sections(), 1);
  EXPECT_EQ(tile.slot_bytes(), 16384);
  EXPECT_EQ(tile.slots, 8);
  const TmemMap map = tile.tmem();
  EXPECT_EQ(map.o, 0);
  EXPECT_EQ(map.s[0], 256);
  EXPECT_EQ(map.s[1], 384);
  EXPECT_EQ(map.end, 512);
}

TEST(TileConfig, depth_512_has_the_documented_sizes) {
  const TileConfig tile = tile_of(2, 512, ScoreClass::kPlain);
  EXPECT_EQ(tile.fault(), nullptr);
  EXPECT_EQ(tile.pair_rows(), 128);
  EXPECT_EQ(tile.BN, 256);
  EXPECT_EQ(tile.sections(), 2);
  EXPECT_EQ(tile.slot_bytes(), 32768);
  EXPECT_EQ(tile.slots, 4);
  const TmemMap map = tile.tmem();
  EXPECT_EQ(map.s[0], 256);
  EXPECT_EQ(map.s[1], 384);
  EXPECT_EQ(map.end, 512);
}

TEST(TileConfig, slots_of_8_bit_elements_are_half_as_large) {
  const TileConfig one = tile_of(1, 256, ScoreClass::kPlain);
  EXPECT_EQ(one.fault(), nullptr);
  EXPECT_EQ(one.slot_bytes(), 8192);
  EXPECT_EQ(one.slots, 21);
  const TileConfig two = tile_of(1, 512, ScoreClass::kGeneral);
  EXPECT_EQ(two.fault(), nullptr);
  EXPECT_EQ(two.slot_bytes(), 16384);
  EXPECT_EQ(two.slots, 11);
}

TEST(TileConfig, columns_of_O_past_the_head_dim_are_not_computed) {
  const TileConfig one = tile_of(2, 256, ScoreClass::kPlain);
  EXPECT_EQ(one.computed_columns(0, 256), 256);
  EXPECT_EQ(one.computed_columns(0, 192), 192);
  EXPECT_EQ(one.computed_columns(0, 130), 160);
  const TileConfig two = tile_of(2, 512, ScoreClass::kPlain);
  EXPECT_EQ(two.computed_columns(0, 512), 256);
  EXPECT_EQ(two.computed_columns(1, 512), 256);
  EXPECT_EQ(two.computed_columns(1, 320), 64);
  EXPECT_EQ(two.computed_columns(1, 321), 128);  // whole batches in both halves of the lanes
}

TEST(TileConfig, faults_are_named) {
  TileConfig tile = tile_of(2, 256, ScoreClass::kPlain);
  tile.slots = 9;
  EXPECT_STREQ(tile.fault(), "Q, P and the slots do not fit in shared memory");
  tile = {.block_rows = 96};
  EXPECT_STREQ(tile.fault(), "M of a pair is 128 or 256");
  tile = {.depth = 768};
  EXPECT_STREQ(tile.fault(), "depth must be one or two sections of 2 BK0 columns");
  tile = {.BN = 256};
  EXPECT_STREQ(tile.fault(), "two S and O do not fit in tensor memory");
  tile = {.softmax_registers = 248};
  EXPECT_STREQ(tile.fault(), "the roles' registers must fill the file");
}

}  // namespace
}  // namespace pagoda::mha_sm100_d512
