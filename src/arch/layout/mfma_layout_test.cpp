// Register maps of MFMA against every element of AMD's matrix instruction calculator, and against
// the linear layouts in Triton's unit tests.
#include "arch/layout/mfma_layout.hpp"

#include <cstdint>
#include <gtest/gtest.h>
#include <ostream>
#include <set>
#include <utility>
#include <vector>

namespace pagoda::arch {

std::ostream& operator<<(std::ostream& out, const MatrixIndex& index) {
  return out << "(" << index.row << ", " << index.column << ")";
}

namespace {

// Where each k of A and B and each row of D lies: the register and the lane of its element 0; its
// other elements lie in the next lanes.
// github.com/ROCm/amd_matrix_instruction_calculator 1.3.2 (2ef9189):
// matrix_calculator.py -a gfx942 -i v_mfma_f32_32x32x8_bf16 -R -A, -B and -D, and likewise
// v_mfma_f32_16x16x16_bf16; f16 has the same registers. Half 1 of v0 is e 1, half 0 of v1 is e 2.
struct Golden {
  int32_t m;
  std::vector<int32_t> e, e_lane;        // [k]
  std::vector<int32_t> vgpr, vgpr_lane;  // [row]
};

const Golden kGolden[] = {
    {32,
     {0, 1, 2, 3, 0, 1, 2, 3},
     {0, 0, 0, 0, 32, 32, 32, 32},
     {0, 1, 2,  3,  0, 1, 2,  3,  4,  5,  6,  7,  4,  5,  6,  7,
      8, 9, 10, 11, 8, 9, 10, 11, 12, 13, 14, 15, 12, 13, 14, 15},
     {0, 0, 0, 0, 32, 32, 32, 32, 0, 0, 0, 0, 32, 32, 32, 32,
      0, 0, 0, 0, 32, 32, 32, 32, 0, 0, 0, 0, 32, 32, 32, 32}},
    {16,
     {0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3},
     {0, 0, 0, 0, 16, 16, 16, 16, 32, 32, 32, 32, 48, 48, 48, 48},
     {0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3},
     {0, 0, 0, 0, 16, 16, 16, 16, 32, 32, 32, 32, 48, 48, 48, 48}},
};

TEST(MfmaLayout, operands_lie_where_amds_calculator_puts_them) {
  for (const Golden& golden : kGolden) {
    const int32_t m = golden.m;
    std::set<std::pair<int32_t, int32_t>> seen;
    for (int32_t k = 0; k < 256 / m; ++k) {
      for (int32_t i = 0; i < m; ++i) {
        const int32_t e = golden.e.at(static_cast<size_t>(k));
        const int32_t lane = golden.e_lane.at(static_cast<size_t>(k)) + i;
        EXPECT_EQ(mfma_a(m, lane, e), (MatrixIndex{i, k})) << m;
        EXPECT_EQ(mfma_b(m, lane, e), (MatrixIndex{k, i})) << m;
        seen.insert({lane, e});
      }
    }
    EXPECT_EQ(seen.size(), 256U);
  }
}

TEST(MfmaLayout, accumulators_lie_where_amds_calculator_puts_them) {
  for (const Golden& golden : kGolden) {
    const int32_t m = golden.m;
    std::set<std::pair<int32_t, int32_t>> seen;
    for (int32_t row = 0; row < m; ++row) {
      for (int32_t column = 0; column < m; ++column) {
        const int32_t vgpr = golden.vgpr.at(static_cast<size_t>(row));
        const int32_t lane = golden.vgpr_lane.at(static_cast<size_t>(row)) + column;
        EXPECT_EQ(mfma_accumulator(m, lane, vgpr), (MatrixIndex{row, column})) << m;
        seen.insert({lane, vgpr});
      }
    }
    EXPECT_EQ(seen.size(), static_cast<size_t>(m * m));
  }
}

// The element of bit b of the lane or of the register element; XOR combines bits.
struct LinearLayout {
  std::vector<MatrixIndex> element, lane;

  [[nodiscard]] MatrixIndex at(int32_t l, int32_t e) const {
    MatrixIndex index;
    const auto add = [&index](const std::vector<MatrixIndex>& bases, int32_t bits) {
      for (size_t b = 0; b < bases.size(); ++b) {
        if ((bits >> b & 1) == 0) continue;
        index.row ^= bases[b].row;
        index.column ^= bases[b].column;
      }
    };
    add(element, e);
    add(lane, l);
    return index;
  }
};

struct LinearGolden {
  int32_t m;
  LinearLayout a, b, accumulator;
};

// triton-lang/triton db1ed00, unittest/Dialect/TritonGPU/LinearLayoutConversionsTest.cpp: tests
// mfma{32,16}_dot_op_{lhs,rhs}_kwidth4 and MFMA{32,16}_2x4Warps, bases of one instruction.
const LinearGolden kLinearGolden[] = {
    {32,
     {{{0, 1}, {0, 2}}, {{1, 0}, {2, 0}, {4, 0}, {8, 0}, {16, 0}, {0, 4}}},
     {{{1, 0}, {2, 0}}, {{0, 1}, {0, 2}, {0, 4}, {0, 8}, {0, 16}, {4, 0}}},
     {{{1, 0}, {2, 0}, {8, 0}, {16, 0}}, {{0, 1}, {0, 2}, {0, 4}, {0, 8}, {0, 16}, {4, 0}}}},
    {16,
     {{{0, 1}, {0, 2}}, {{1, 0}, {2, 0}, {4, 0}, {8, 0}, {0, 4}, {0, 8}}},
     {{{1, 0}, {2, 0}}, {{0, 1}, {0, 2}, {0, 4}, {0, 8}, {4, 0}, {8, 0}}},
     {{{1, 0}, {2, 0}}, {{0, 1}, {0, 2}, {0, 4}, {0, 8}, {4, 0}, {8, 0}}}},
};

TEST(MfmaLayout, maps_are_the_linear_layouts_of_triton) {
  for (const auto& [m, a, b, accumulator] : kLinearGolden) {
    for (int32_t lane = 0; lane < 64; ++lane) {
      for (int32_t e = 0; e < 4; ++e) {
        EXPECT_EQ(mfma_a(m, lane, e), a.at(lane, e)) << m << " lane " << lane << " " << e;
        EXPECT_EQ(mfma_b(m, lane, e), b.at(lane, e)) << m << " lane " << lane << " " << e;
      }
      for (int32_t i = 0; i < m * m / 64; ++i) {
        EXPECT_EQ(mfma_accumulator(m, lane, i), accumulator.at(lane, i))
            << m << " lane " << lane << " " << i;
      }
    }
  }
}

TEST(MfmaLayout, four_accumulators_are_the_b_map_of_their_rows) {
  for (const int32_t m : {16, 32}) {
    const int32_t k = 256 / m;  // rows of S^T that one instruction of O^T = V^T P^T takes
    for (int32_t lane = 0; lane < 64; ++lane) {
      for (int32_t i = 0; i < m * m / 64; ++i) {
        const MatrixIndex s = mfma_accumulator(m, lane, i), p = mfma_b(m, lane, i % 4);
        EXPECT_EQ(s, (MatrixIndex{k * (i / 4) + p.row, p.column}));
      }
    }
  }
}

}  // namespace
}  // namespace pagoda::arch
