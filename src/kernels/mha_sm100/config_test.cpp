// The configuration agrees with the sizes that Modular documents for FA4Config.
#include "kernels/mha_sm100/config.hpp"

#include <gtest/gtest.h>

namespace pagoda::mha_sm100 {
namespace {

struct Expected {
  int element_bytes, head_dim;
  int depth, BN, slots, num_mma_stages;
};

class Documented : public testing::TestWithParam<Expected> {};

TEST_P(Documented, tile_has_the_documented_sizes) {
  const Expected& e = GetParam();
  const TileConfig tile = tile_of(e.element_bytes, e.head_dim, ScoreClass::kPlain);
  EXPECT_EQ(tile.fault(), nullptr);
  EXPECT_EQ(tile.depth, e.depth);
  EXPECT_EQ(tile.BN, e.BN);
  EXPECT_EQ(tile.slots, e.slots);
  EXPECT_EQ(tile.num_mma_stages(), e.num_mma_stages);
}
// bf16, depth 64: four slots of K, four of V; bf16, depth 128: a shared ring of five; e4m3, depth
// 64: a shared ring of seventeen; e4m3, depth 128: six and six. At depth 128 a row of K is two
// swizzle widths, so K and V have two parts.
INSTANTIATE_TEST_SUITE_P(
    Shapes, Documented,
    testing::Values(Expected{2, 64, 64, 192, 8, 1}, Expected{2, 72, 128, 128, 5, 2},
                    Expected{2, 80, 128, 128, 5, 2}, Expected{2, 96, 128, 128, 5, 2},
                    Expected{2, 128, 128, 128, 5, 2}, Expected{1, 64, 64, 192, 17, 1},
                    Expected{1, 128, 128, 128, 12, 2}));

// A CTA of a pair loads half of each K and V tile: slots are half as large, and twice as many.
TEST(TileConfig, a_pair_halves_the_slots) {
  const TileConfig wide = tile_of(2, 128, ScoreClass::kPlain, 2);
  EXPECT_EQ(wide.fault(), nullptr);
  EXPECT_EQ(wide.BN, 128);
  EXPECT_EQ(wide.slot_bytes(), 16384);
  EXPECT_EQ(wide.slots, 10);
  EXPECT_EQ(wide.num_mma_stages(), 2);
  EXPECT_EQ(wide.kv_tiling().k_rows_per_cta(), 64);
  EXPECT_EQ(wide.kv_tiling().v_cols_per_cta(), 64);
  const TileConfig bytes = tile_of(1, 96, ScoreClass::kGeneral, 2);
  EXPECT_EQ(bytes.fault(), nullptr);
  EXPECT_EQ(bytes.slots, 23);
  EXPECT_TRUE(bytes.has_shared_ring());
  EXPECT_EQ(bytes.num_mma_stages(), 2);
  EXPECT_STREQ(tile_of(2, 64, ScoreClass::kPlain, 2).fault(),
               "a CTA's columns of V must be a multiple of the swizzle's width");
}

TEST(TileConfig, tensor_memory_is_full_at_depth_64_and_128) {
  const TmemMap wide = tile_of(2, 128, ScoreClass::kPlain).tmem();
  EXPECT_EQ(wide.s[1], 128);
  EXPECT_EQ(wide.o[0], 256);
  EXPECT_EQ(wide.o[1], 384);
  EXPECT_EQ(wide.end, 512);
  const TmemMap narrow = tile_of(2, 64, ScoreClass::kPlain).tmem();
  EXPECT_EQ(narrow.s[1], 192);
  EXPECT_EQ(narrow.o[0], 384);
  EXPECT_EQ(narrow.o[1], 448);
  EXPECT_EQ(narrow.end, 512);
}

TEST(TileConfig, a_part_of_a_stage_is_a_swizzle_width_of_k_or_half_of_v) {
  const pipeline::KVTiling wide = tile_of(2, 128, ScoreClass::kPlain).kv_tiling();
  EXPECT_EQ(wide.BK0, 64);
  EXPECT_EQ(wide.BK1, 64);
  const pipeline::KVTiling narrow = tile_of(2, 64, ScoreClass::kPlain).kv_tiling();
  EXPECT_EQ(narrow.BK0, 64);
  EXPECT_EQ(narrow.BK1, 192);
}

// 4 cycles of P V a key in the first, at most 2 in the others.
TEST(TileConfig, pv_starts_after_half_or_three_quarters_of_p) {
  EXPECT_EQ(tile_of(2, 128, ScoreClass::kPlain).first_part(), 64);
  EXPECT_EQ(tile_of(1, 128, ScoreClass::kGeneral).first_part(), 96);
  EXPECT_EQ(tile_of(2, 64, ScoreClass::kPlain).first_part(), 144);
  EXPECT_EQ(tile_of(1, 64, ScoreClass::kPlain).first_part(), 144);
}

TEST(TileConfig, faults_are_named) {
  TileConfig tile;
  EXPECT_EQ(tile.fault(), nullptr);
  tile.slots = 6;
  EXPECT_STREQ(tile.fault(), "Q and the slots do not fit in shared memory");
  tile = {.BN = 136};
  EXPECT_NE(tile.fault(), nullptr);
  tile = {.swizzle = arch::Swizzle::k64B};
  EXPECT_STREQ(tile.fault(), "K and V have one part or two");
  tile = {.BN = 32};
  EXPECT_EQ(tile.fault(), nullptr);
  tile = {.BN = 16};
  EXPECT_STREQ(tile.fault(), "P has two parts of whole batches");
  tile = {.softmax_registers = 192};
  EXPECT_STREQ(tile.fault(), "the roles' registers must fill the file");
}

}  // namespace
}  // namespace pagoda::mha_sm100
