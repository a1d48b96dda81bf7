// VectorLayout and its swizzles: places by the formulas of a blocked product and of row-major, and
// the banks of shared memory that a quarter warp touches at once, or a phase of a wave of 64 lanes.
#include "operand/vector_layout.hpp"

#include <algorithm>
#include <gtest/gtest.h>
#include <set>
#include <vector>

#include "operand/async_kv_buffer.hpp"
#include "testing/material/lds_banks.hpp"

namespace pagoda::operand {
namespace {

constexpr VectorLayout blocked(int rows, int chunks, VectorSwizzle swizzle = {}) {
  return {.rows = rows, .chunks = chunks, .is_blocked = true, .swizzle = swizzle};
}
constexpr VectorLayout row_major(int rows, int chunks, VectorSwizzle swizzle = {}) {
  return {.rows = rows, .chunks = chunks, .is_blocked = false, .swizzle = swizzle};
}
VectorLayout async(int rows, int chunks) {
  return async_smem_layout({.btile_dim0 = rows, .btile_dim1 = 8 * chunks});
}

// The tiles of the kernels, each with the swizzle that it has there.
std::vector<VectorLayout> swizzled_layouts() {
  std::vector<VectorLayout> layouts;
  for (const int rows : {16, 32, 64}) {
    for (const int chunks : {4, 8, 16, 32})
      layouts.push_back(blocked(rows, chunks, blocked_swizzle(rows)));
  }
  for (const int rows : {16, 32, 64}) {
    for (const int chunks : {2, 4, 8, 16, 32, 64})
      layouts.push_back(row_major(rows, chunks, row_major_swizzle(chunks)));
  }
  for (const int rows : {16, 32, 64, 128}) {
    for (const int chunks : {8, 16, 32, 64}) layouts.push_back(async(rows, chunks));
  }
  return layouts;
}

// How many of the vectors share a group of 4 banks, where they share most. 8 groups hold 16 bytes
// each; a quarter warp accesses 8 vectors at once.
int most_in_a_bank_group(const std::vector<int>& vectors) {
  std::vector<int> count(8, 0);
  int most = 0;
  for (const int vector : vectors) {
    int& of_group = count[static_cast<size_t>(vector % 8)];
    most = std::max(most, ++of_group);
  }
  return most;
}
// Of the 8 rows of a matrix fragment, over all fragments.
int worst_fragment(const VectorLayout& layout) {
  int worst = 0;
  for (int row = 0; row < layout.rows; row += 8) {
    for (int chunk = 0; chunk < layout.chunks; ++chunk) {
      std::vector<int> vectors;
      vectors.reserve(8);
      for (int i = 0; i < 8; ++i) vectors.push_back(layout.index(row + i, chunk));
      worst = std::max(worst, most_in_a_bank_group(vectors));
    }
  }
  return worst;
}
// Of the stores of a quarter warp to `chunks` chunks of each of 8 / chunks rows.
int worst_store(const VectorLayout& layout, int chunks) {
  int worst = 0;
  for (int row = 0; row < layout.rows; row += 8 / chunks) {
    for (int chunk = 0; chunk < layout.chunks; chunk += chunks) {
      std::vector<int> vectors;
      vectors.reserve(8);
      for (int i = 0; i < 8; ++i) {
        vectors.push_back(layout.index(row + i / chunks, chunk + i % chunks));
      }
      worst = std::max(worst, most_in_a_bank_group(vectors));
    }
  }
  return worst;
}

TEST(VectorLayout, blocked_product_has_a_block_of_all_rows_for_each_chunk) {
  const VectorLayout layout = blocked(64, 4);
  EXPECT_EQ(layout.size(), 256);
  EXPECT_EQ(layout.row_stride(), 1);
  EXPECT_EQ(layout.chunk_stride(), 64);
  for (int row = 0; row < 64; ++row) {
    for (int chunk = 0; chunk < 4; ++chunk) EXPECT_EQ(layout.index(row, chunk), chunk * 64 + row);
  }
}

TEST(VectorLayout, row_major_has_the_chunks_of_a_row_beside_each_other) {
  const VectorLayout layout = row_major(32, 16);
  EXPECT_EQ(layout.size(), 512);
  EXPECT_EQ(layout.row_stride(), 16);
  EXPECT_EQ(layout.chunk_stride(), 1);
  for (int row = 0; row < 32; ++row) {
    for (int chunk = 0; chunk < 16; ++chunk) EXPECT_EQ(layout.index(row, chunk), row * 16 + chunk);
  }
}

TEST(VectorLayout, swizzle_is_an_xor_with_higher_bits) {
  constexpr VectorSwizzle swizzle{.bits = 2, .base = 1, .shift = 5};
  EXPECT_EQ(swizzle(0), 0);
  EXPECT_EQ(swizzle(1 << 5), 1 << 5);  // bit 5 goes to bit 0, below the base
  EXPECT_EQ(swizzle(1 << 6), 1 << 6 | 1 << 1);
  EXPECT_EQ(swizzle(1 << 7), 1 << 7 | 1 << 2);
  EXPECT_EQ(swizzle(1 << 8), 1 << 8);  // above the bits
  EXPECT_EQ(swizzle(1 << 6 | 1 << 1), 1 << 6);
  EXPECT_EQ((VectorSwizzle{}(1234)), 1234);
}

TEST(VectorLayout, every_swizzle_is_a_bijection_of_the_tile) {
  for (const VectorLayout& layout : swizzled_layouts()) {
    std::set<int> places;
    for (int row = 0; row < layout.rows; ++row) {
      for (int chunk = 0; chunk < layout.chunks; ++chunk) places.insert(layout.index(row, chunk));
    }
    EXPECT_EQ(places.size(), static_cast<size_t>(layout.rows * layout.chunks))
        << layout.rows << " x " << layout.chunks;
    EXPECT_EQ(*places.begin(), 0);
    EXPECT_EQ(*places.rbegin(), layout.rows * layout.chunks - 1);
  }
}

TEST(VectorLayout, every_swizzle_repeats_every_8_rows) {
  for (const VectorLayout& layout : swizzled_layouts()) {
    EXPECT_TRUE(layout.repeats_every_8_rows()) << layout.rows << " x " << layout.chunks;
  }
  // The test of the test: bits that reach further do not.
  EXPECT_FALSE(blocked(64, 16, {.bits = 4, .base = 0, .shift = 6}).repeats_every_8_rows());
  EXPECT_FALSE(row_major(64, 4, {.bits = 2, .base = 0, .shift = 5}).repeats_every_8_rows());
}

TEST(VectorLayout, rows_of_a_fragment_lie_in_8_bank_groups) {
  for (const VectorLayout& layout : swizzled_layouts()) {
    EXPECT_EQ(worst_fragment(layout), 1) << layout.rows << " x " << layout.chunks;
  }
}

TEST(VectorLayout, rows_of_a_fragment_conflict_without_a_swizzle) {
  EXPECT_EQ(worst_fragment(row_major(64, 4)), 4);
  EXPECT_EQ(worst_fragment(row_major(64, 8)), 8);
  EXPECT_EQ(worst_fragment(row_major(32, 16)), 8);
}

TEST(VectorLayout, blocked_swizzle_spreads_the_stores_of_2_rows_of_4_chunks) {
  for (const int rows : {16, 32, 64, 128}) {
    for (const int chunks : {4, 8, 16, 32}) {
      EXPECT_EQ(worst_store(blocked(rows, chunks, blocked_swizzle(rows)), 4), 1)
          << rows << " x " << chunks;
      EXPECT_EQ(worst_store(blocked(rows, chunks), 4), 4) << "without a swizzle";
    }
  }
}

TEST(VectorLayout, row_major_swizzle_spreads_the_stores_of_a_quarter_warp) {
  for (const int chunks : {4, 8, 16, 32, 64}) {
    const VectorLayout layout = row_major(64, chunks, row_major_swizzle(chunks));
    EXPECT_EQ(worst_store(layout, std::min(chunks, 8)), 1) << chunks;
  }
}

TEST(VectorLayout, async_layout_spreads_the_stores_of_128_bytes_of_a_row) {
  for (const int rows : {16, 32, 64, 128}) {
    for (const int chunks : {8, 16, 32, 64}) {
      EXPECT_EQ(worst_store(async(rows, chunks), 8), 1) << rows << " x " << chunks;
      EXPECT_EQ(worst_store(blocked(rows, chunks), 8), 8) << "without a swizzle";
    }
  }
}

// cp.async of 16 bytes a thread fetches a sector of 32 bytes once if both halves go to one line.
TEST(VectorLayout, async_layout_keeps_128_bytes_of_a_row_in_one_line) {
  for (const int chunks : {8, 24, 32}) {
    const VectorLayout layout = async(64, chunks);
    for (int row = 0; row < layout.rows; ++row) {
      for (int chunk = 0; chunk < chunks; ++chunk) {
        EXPECT_EQ(layout.index(row, chunk) / 8, layout.index(row, chunk - chunk % 8) / 8);
      }
    }
  }
}

TEST(VectorLayout, fragments_of_mfma_are_read_without_a_conflict) {
  using material::worst_fragment_read;
  for (const int chunks : {8, 16}) {  // Q and P of token generation, by 16x16x16
    EXPECT_EQ(worst_fragment_read(panel_layout(16, chunks), 16), 1) << chunks;
    EXPECT_EQ(worst_fragment_read(panel_layout(64, chunks), 32), 1) << chunks;
  }
  for (const int chunks : {4, 8, 16}) {  // K of prefill, by 32x32x8, and of token generation
    EXPECT_EQ(worst_fragment_read(blocked(64, chunks, blocked_swizzle(64)), 32), 1) << chunks;
    EXPECT_EQ(worst_fragment_read(row_major(64, chunks, row_major_swizzle(chunks)), 16), 1);
    EXPECT_GT(worst_fragment_read(row_major(64, chunks), 16), 1) << "without a swizzle";
  }
}

template <VectorLayout layout, int further>
void expect_further_chunk() {
  // `chunk`: multiples of a power of two above `further`.
  int step = 1;
  while (step <= further) step *= 2;
  for (int row = 0; row < layout.rows; ++row) {
    for (int chunk = 0; chunk + further < layout.chunks; chunk += step) {
      EXPECT_EQ(vector_index<layout>(row, chunk), layout.index(row, chunk));
      EXPECT_EQ((further_chunk<layout, further>(layout.index(row, chunk))),
                layout.index(row, chunk + further))
          << row << ", " << chunk << " + " << further;
    }
  }
}
template <VectorLayout layout, int... further>
void expect_further_chunks() {
  (expect_further_chunk<layout, further>(), ...);
}

TEST(VectorLayout, further_chunk_moves_an_index_to_another_chunk) {
  expect_further_chunks<blocked(64, 4, blocked_swizzle(64)), 0, 1, 2, 3>();
  expect_further_chunks<blocked(32, 16, blocked_swizzle(32)), 0, 1, 3, 4, 7, 8, 13>();
  expect_further_chunks<row_major(64, 4, row_major_swizzle(4)), 0, 1, 2, 3>();
  expect_further_chunks<row_major(32, 16, row_major_swizzle(16)), 0, 1, 3, 4, 7, 8, 13>();
  expect_further_chunks<row_major(16, 64, row_major_swizzle(64)), 1, 8, 15, 17, 40, 63>();
  constexpr VectorLayout async_layout = async_smem_layout({.btile_dim0 = 64, .btile_dim1 = 128});
  expect_further_chunks<async_layout, 0, 1, 3, 4, 7, 8, 13>();
}

}  // namespace
}  // namespace pagoda::operand
