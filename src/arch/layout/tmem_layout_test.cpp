// Tensor memory: every map covers its lanes and columns once, and the documented corner elements
// have their documented addresses.
#include "arch/layout/tmem_layout.hpp"

#include <array>
#include <cstdint>
#include <gtest/gtest.h>
#include <ostream>
#include <set>
#include <tuple>
#include <utility>

namespace pagoda::arch {

std::ostream& operator<<(std::ostream& out, const TmemIndex& at) {
  return out << "lane " << at.lane << " column " << at.column;
}
std::ostream& operator<<(std::ostream& out, const TmemAccumulatorIndex& index) {
  return out << "CTA " << index.cta << " " << index.at;
}

namespace {

TEST(TmemLayout, an_address_is_lane_and_column) {
  constexpr TmemPtr kPtr{0x00200040};
  EXPECT_EQ(kPtr.lane(), 32);
  EXPECT_EQ(kPtr.column(), 64);
  EXPECT_EQ(kPtr.lanes(16).columns(3).address, 0x00300043U);
  EXPECT_EQ(tmem_first_lane_of_warp(6), 64);
}

TEST(TmemLayout, allocations_are_powers_of_two_from_32_to_512) {
  std::set<int32_t> allowed;
  for (int32_t columns = -32; columns <= 1024; ++columns) {
    if (is_tmem_allocation(columns)) allowed.insert(columns);
  }
  EXPECT_EQ(allowed, (std::set<int32_t>{32, 64, 128, 256, 512}));
}

struct Placement {
  MmaForm form;
  int32_t m, ctas, lanes;  // lanes used in each CTA
};

constexpr Placement kPlacements[] = {
    {{.cta_group = 1}, 128, 1, 128}, {{.cta_group = 1}, 64, 1, 64}, {{.cta_group = 2}, 256, 2, 128},
    {{.cta_group = 2}, 128, 2, 128}, {{.is_ws = true}, 32, 1, 128}, {{.is_ws = true}, 64, 1, 128},
    {{.is_ws = true}, 128, 1, 128},
};

// Columns of an m x n accumulator.
int32_t accumulator_columns(const MmaForm& form, int32_t m, int32_t n) {
  if (form.is_ws) return n * m / kTmemLanes;
  return form.cta_group == 2 && m == 128 ? n / 2 : n;
}

TEST(TmemLayout, accumulators_fill_their_lanes_and_columns_once) {
  for (const Placement& p : kPlacements) {
    for (const int32_t n : {64, 128, 256}) {
      ASSERT_EQ(validate_shape(p.form, p.m, n), nullptr);
      const int32_t columns = accumulator_columns(p.form, p.m, n);
      std::set<std::tuple<int32_t, int32_t, int32_t>> cells;
      std::set<std::pair<int32_t, int32_t>> lanes;
      for (int32_t row = 0; row < p.m; ++row) {
        for (int32_t column = 0; column < n; ++column) {
          const auto [cta, at] = tmem_accumulator(p.form, p.m, n, row, column);
          EXPECT_TRUE(cta >= 0 && cta < p.ctas && at.lane >= 0 && at.lane < kTmemLanes);
          EXPECT_TRUE(at.column >= 0 && at.column < columns);
          cells.insert({cta, at.lane, at.column});
          lanes.insert({cta, at.lane});
        }
      }
      EXPECT_EQ(cells.size(), static_cast<size_t>(p.m * n)) << p.m << " x " << n;
      EXPECT_EQ(lanes.size(), static_cast<size_t>(p.ctas * p.lanes));
      EXPECT_EQ(p.m * n, p.ctas * p.lanes * columns);
    }
  }
}

TEST(TmemLayout, accumulator_corners_lie_where_the_manual_puts_them) {
  using Index = TmemAccumulatorIndex;
  EXPECT_EQ(tmem_accumulator({}, 128, 256, 127, 200), (Index{0, {127, 200}}));
  EXPECT_EQ(tmem_accumulator({}, 64, 128, 15, 7), (Index{0, {15, 7}}));
  EXPECT_EQ(tmem_accumulator({}, 64, 128, 16, 7), (Index{0, {32, 7}}));
  EXPECT_EQ(tmem_accumulator({}, 64, 128, 63, 7), (Index{0, {111, 7}}));
  EXPECT_EQ(tmem_accumulator({.cta_group = 2}, 256, 128, 130, 9), (Index{1, {2, 9}}));
  EXPECT_EQ(tmem_accumulator({.cta_group = 2}, 128, 128, 70, 9), (Index{1, {6, 9}}));
  EXPECT_EQ(tmem_accumulator({.cta_group = 2}, 128, 128, 70, 73), (Index{1, {70, 9}}));
  EXPECT_EQ(tmem_accumulator({.is_ws = true}, 32, 128, 5, 100), (Index{0, {101, 4}}));
  EXPECT_EQ(tmem_accumulator({.is_ws = true}, 64, 128, 5, 100), (Index{0, {69, 36}}));
}

TEST(TmemLayout, two_tiles_of_64_rows_interleave_at_lane_16) {
  std::set<int32_t> lanes;
  for (int32_t row = 0; row < 64; ++row) {
    const int32_t lane = tmem_accumulator({}, 64, 64, row, 0).at.lane;
    lanes.insert(lane);
    lanes.insert(lane + 16);
  }
  EXPECT_EQ(lanes.size(), 128U);
  EXPECT_EQ(*lanes.rbegin(), 127);
}

struct Movement {
  TmemShape shape;
  int32_t max_repeat, lanes, columns;  // of .x1
};

constexpr Movement kMovements[] = {{TmemShape::k32x32b, 128, 32, 1},
                                   {TmemShape::k16x64b, 128, 16, 2},
                                   {TmemShape::k16x128b, 64, 16, 4},
                                   {TmemShape::k16x256b, 32, 16, 8},
                                   {TmemShape::k16x32bx2, 128, 16, 2}};

TEST(TmemLayout, loads_and_stores_cover_their_rectangle_once) {
  for (const auto& [shape, max_repeat, lanes, columns] : kMovements) {
    for (int32_t repeat = 1; repeat <= max_repeat; repeat *= 2) {
      ASSERT_TRUE(is_tmem_repeat(shape, repeat));
      std::set<std::pair<int32_t, int32_t>> cells;
      for (int32_t lane = 0; lane < 32; ++lane) {
        for (int32_t r = 0; r < tmem_registers(shape, repeat); ++r) {
          const TmemIndex at = tmem_element(shape, lane, r, repeat);
          EXPECT_TRUE(at.lane >= 0 && at.lane < lanes);
          EXPECT_TRUE(at.column >= 0 && at.column < columns * repeat);
          cells.insert({at.lane, at.column});
        }
      }
      EXPECT_EQ(cells.size(), static_cast<size_t>(lanes * columns * repeat));
      EXPECT_EQ(lanes * columns * repeat, 32 * tmem_registers(shape, repeat));
    }
    EXPECT_FALSE(is_tmem_repeat(shape, 2 * max_repeat));
    EXPECT_FALSE(is_tmem_repeat(shape, 3));
    EXPECT_FALSE(is_tmem_repeat(shape, 0));
  }
}

TEST(TmemLayout, loads_hold_what_the_manual_says) {
  EXPECT_EQ(tmem_element(TmemShape::k32x32b, 7, 5), (TmemIndex{7, 5}));
  EXPECT_EQ(tmem_element(TmemShape::k16x64b, 7, 5), (TmemIndex{9, 11}));
  EXPECT_EQ(tmem_element(TmemShape::k16x128b, 7, 5), (TmemIndex{9, 11}));
  EXPECT_EQ(tmem_element(TmemShape::k16x256b, 7, 5), (TmemIndex{1, 15}));
  EXPECT_EQ(tmem_element(TmemShape::k16x256b, 7, 6), (TmemIndex{9, 14}));
  EXPECT_EQ(tmem_element(TmemShape::k16x32bx2, 23, 5, 64), (TmemIndex{7, 69}));
}

TEST(TmemLayout, shape_16x256b_is_the_accumulator_of_mma_sync) {
  for (int32_t lane = 0; lane < 32; ++lane) {
    for (int32_t r = 0; r < 128; ++r) {
      const MatrixIndex index = mma_accumulator(lane, r % 4);
      EXPECT_EQ(tmem_element(TmemShape::k16x256b, lane, r),
                (TmemIndex{index.row, index.column + 8 * (r / 4)}));
    }
  }
}

TEST(TmemLayout, copies_bring_each_row_to_as_many_lanes_as_they_say) {
  for (const auto& [shape, rows, copies, columns] :
       {std::tuple{TmemCopyShape::k128x256b, 128, 1, 8},
        {TmemCopyShape::k128x128b, 128, 1, 4},
        {TmemCopyShape::k4x256b, 4, 1, 8},
        {TmemCopyShape::k64x128bWarps02And13, 64, 2, 4},
        {TmemCopyShape::k64x128bWarps01And23, 64, 2, 4},
        {TmemCopyShape::k32x128bWarpx4, 32, 4, 4}}) {
    EXPECT_EQ(tmem_copy_rows(shape), rows);
    EXPECT_EQ(tmem_copy_columns(shape), columns);
    std::array<int, 128> lanes_of_row{};
    for (int32_t lane = 0; lane < kTmemLanes; ++lane) {
      const int32_t row = tmem_copy_row(shape, lane);
      ASSERT_LT(row, rows);
      if (row >= 0) ++lanes_of_row.at(static_cast<size_t>(row));
    }
    for (int32_t row = 0; row < rows; ++row) {
      EXPECT_EQ(lanes_of_row.at(static_cast<size_t>(row)), copies);
    }
  }
}

TEST(TmemLayout, copies_choose_the_warps_of_their_names) {
  const auto warps_of = [](TmemCopyShape shape, int32_t row) {
    std::set<int32_t> warps;
    for (int32_t lane = 0; lane < kTmemLanes; ++lane) {
      if (tmem_copy_row(shape, lane) == row) warps.insert(lane / 32);
    }
    return warps;
  };
  using Set = std::set<int32_t>;
  EXPECT_EQ(warps_of(TmemCopyShape::k64x128bWarps02And13, 5), (Set{0, 2}));
  EXPECT_EQ(warps_of(TmemCopyShape::k64x128bWarps02And13, 37), (Set{1, 3}));
  EXPECT_EQ(warps_of(TmemCopyShape::k64x128bWarps01And23, 5), (Set{0, 1}));
  EXPECT_EQ(warps_of(TmemCopyShape::k64x128bWarps01And23, 37), (Set{2, 3}));
  EXPECT_EQ(warps_of(TmemCopyShape::k32x128bWarpx4, 5), (Set{0, 1, 2, 3}));
  EXPECT_EQ(warps_of(TmemCopyShape::k4x256b, 2), (Set{2}));
}

}  // namespace
}  // namespace pagoda::arch
