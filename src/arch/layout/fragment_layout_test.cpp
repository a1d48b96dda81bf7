// Register maps: each covers its tile once; the maps that a kernel chains agree with each other.
#include "arch/layout/fragment_layout.hpp"

#include <cstdint>
#include <gtest/gtest.h>
#include <ostream>
#include <vector>

namespace pagoda::arch {

std::ostream& operator<<(std::ostream& out, const MatrixIndex& index) {
  return out << "(" << index.row << ", " << index.column << ")";
}

namespace {

template <typename Map>
void expect_bijection(Map map, int32_t threads, int32_t elements, int32_t rows, int32_t columns) {
  ASSERT_EQ(threads * elements, rows * columns);
  std::vector<int> seen(static_cast<size_t>(rows) * static_cast<size_t>(columns), 0);
  for (int32_t t = 0; t < threads; ++t) {
    for (int32_t e = 0; e < elements; ++e) {
      const MatrixIndex at = map(t, e);
      ASSERT_TRUE(at.row >= 0 && at.row < rows && at.column >= 0 && at.column < columns)
          << t << " " << e;
      ++seen[static_cast<size_t>(at.row) * static_cast<size_t>(columns) +
             static_cast<size_t>(at.column)];
    }
  }
  for (const int count : seen) EXPECT_EQ(count, 1);
}

TEST(FragmentLayout, every_map_covers_its_tile_once) {
  expect_bijection(mma_accumulator, 32, 4, 16, 8);
  expect_bijection(mma_a_16bit, 32, 8, 16, 16);
  expect_bijection(mma_b_16bit, 32, 4, 16, 8);
  expect_bijection(mma_a_16bit, 32, 4, 16, 8);  // m16n8k8
  expect_bijection(mma_b_16bit, 32, 2, 8, 8);
  expect_bijection(mma_a_8bit, 32, 16, 16, 32);
  expect_bijection(mma_b_8bit, 32, 8, 32, 8);
  expect_bijection(matrix_element, 32, 2, 8, 8);
  expect_bijection(matrix_element_transposed, 32, 2, 8, 8);
  expect_bijection(wgmma_a_16bit, 128, 8, 64, 16);
  expect_bijection(wgmma_a_8bit, 128, 16, 64, 32);
  for (int32_t n = 8; n <= 256; n += 8) expect_bijection(wgmma_accumulator, 128, n / 2, 64, n);
}

// The closed forms of the PTX ISA, for one thread with no zero in its index.
TEST(FragmentLayout, thread_101_holds_what_the_manual_says) {
  // Warp 3, group 1, thread 1 of the group.
  EXPECT_EQ(wgmma_accumulator(101, 0), (MatrixIndex{49, 2}));
  EXPECT_EQ(wgmma_accumulator(101, 1), (MatrixIndex{49, 3}));
  EXPECT_EQ(wgmma_accumulator(101, 2), (MatrixIndex{57, 2}));
  EXPECT_EQ(wgmma_accumulator(101, 7), (MatrixIndex{57, 11}));
  EXPECT_EQ(wgmma_a_16bit(101, 6), (MatrixIndex{57, 10}));
  EXPECT_EQ(wgmma_a_8bit(101, 0), (MatrixIndex{49, 4}));
  EXPECT_EQ(wgmma_a_8bit(101, 7), (MatrixIndex{57, 7}));
  EXPECT_EQ(wgmma_a_8bit(101, 8), (MatrixIndex{49, 20}));
  EXPECT_EQ(mma_b_16bit(5, 3), (MatrixIndex{11, 1}));
  EXPECT_EQ(mma_b_8bit(5, 5), (MatrixIndex{21, 1}));
}

TEST(FragmentLayout, the_16_bit_a_map_is_the_accumulator_map_of_two_blocks_of_8_columns) {
  for (int32_t t = 0; t < 128; ++t) {
    for (int32_t block = 0; block < 8; ++block) {  // of 16 keys
      for (int32_t e = 0; e < 8; ++e) {
        const MatrixIndex s = wgmma_accumulator(t, 8 * block + e), p = wgmma_a_16bit(t, e);
        EXPECT_EQ(s, (MatrixIndex{p.row, 16 * block + p.column}));
      }
    }
  }
}

TEST(FragmentLayout, the_8_bit_a_map_is_not) {
  int differences = 0;
  for (int32_t e = 0; e < 16; ++e) {
    if (wgmma_accumulator(1, e) != wgmma_a_8bit(1, e)) ++differences;
  }
  EXPECT_GT(differences, 0);
}

TEST(FragmentLayout, ldmatrix_x4_of_a_row_major_tile_gives_a) {
  for (int32_t lane = 0; lane < 32; ++lane) {
    for (int32_t matrix = 0; matrix < 4; ++matrix) {  // rows 0, rows 8, then 8 further k
      for (int32_t e = 0; e < 2; ++e) {
        const MatrixIndex at = matrix_element(lane, e);
        EXPECT_EQ(mma_a_16bit(lane, 2 * matrix + e),
                  (MatrixIndex{8 * (matrix % 2) + at.row, 8 * (matrix / 2) + at.column}));
      }
    }
  }
}

TEST(FragmentLayout, ldmatrix_gives_b_from_k_and_transposed_from_v) {
  for (int32_t lane = 0; lane < 32; ++lane) {
    for (int32_t matrix = 0; matrix < 2; ++matrix) {  // 8 further k
      for (int32_t e = 0; e < 2; ++e) {
        const MatrixIndex b = mma_b_16bit(lane, 2 * matrix + e);
        const MatrixIndex k = matrix_element(lane, e);  // memory [n][k]
        EXPECT_EQ(b, (MatrixIndex{8 * matrix + k.column, k.row}));
        const MatrixIndex v = matrix_element_transposed(lane, e);  // memory [k][n]
        EXPECT_EQ(b, (MatrixIndex{8 * matrix + v.row, v.column}));
      }
    }
  }
}

TEST(FragmentLayout, each_lane_addresses_one_row) {
  std::vector<int> rows(32, 0);
  for (int32_t matrix = 0; matrix < 4; ++matrix) {
    for (int32_t row = 0; row < 8; ++row) {
      ++rows.at(static_cast<size_t>(matrix_row_lane(matrix, row)));
    }
  }
  for (const int count : rows) EXPECT_EQ(count, 1);
}

}  // namespace
}  // namespace pagoda::arch
