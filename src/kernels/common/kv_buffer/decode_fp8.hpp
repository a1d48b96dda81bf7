// DecodeFp8: a warp's keys of an e4m3 KV tile in decoding, from shared memory to B fragments of
// f16, which represents every e4m3 number.
//
// The order of the sum over head dims is free, and so is the numbering of the columns of O. They
// are chosen so that a lane loads neighbouring bytes and no byte moves between lanes. With q =
// lane % 4 and g = lane / 4:
//
//        a lane loads                                    of which
//   K    key g of eight, columns 64 i + 16 q ..          four columns are a step of the sum: MMA K
//   V    keys 2 q, 2 q + 1, 2 q + 8, 2 q + 9 of sixteen, column 2 g is column g of the first of
//        columns 2 g, 2 g + 1 of sixteen                 two n-tiles of O, 2 g + 1 of the second
//
// So Q has its columns in K's order, and a lane's sums of two n-tiles are O of four neighbouring
// columns of each of its two rows.
#pragma once

#include <cstdint>

#include "arch/ldmatrix.hpp"
#include "arch/math.hpp"
#include "arch/memory.hpp"
#include "arch/thread.hpp"
#include "core/target.hpp"

namespace pagoda::kernels::kv_buffer {

// `depth`: head dim.
template <int depth>
struct DecodeFp8 {
  using Vector = arch::Words<4>;
  static constexpr int kVectors = depth / 16;  // of a row
  static constexpr int kGroups = depth / 64;   // of columns of K that a lane loads at once

  // Where vector `vector` of row `row` of the warp's keys is. No access below, nor the copy of
  // eight vectors of neighbouring rows, has a bank conflict.
  static PAGODA_HOST_DEVICE constexpr int index(int row, int vector) {
    static_assert(kVectors == 4 || kVectors == 8);
    const int swizzle = row / 2 % 4 + (kVectors == 8 ? row % 2 * 4 : 0);
    return row * kVectors + (vector ^ swizzle);
  }

  // Four steps of the sum over head dims, those of the columns of group `group`, for keys 8 n ...
  static PAGODA_DEVICE void load_k(arch::SharedPtr<const Vector> keys, int n, int group,
                                   uint32_t (&b)[4][2]) {
    const int lane = arch::lane_idx();
    const int at = (index(lane / 4, lane % 4) ^ 4 * group) + 8 * n * kVectors;
    Vector wide[2];
    arch::widen_e4m3_f16(arch::load(keys + at), wide);
    PAGODA_UNROLL
    for (int step = 0; step < 4; ++step) {
      PAGODA_UNROLL
      for (int i = 0; i < 2; ++i) b[step][i] = wide[step / 2].word[step % 2 * 2 + i];
    }
  }
  // Four n-tiles of O, those of columns 32 j .., for keys 16 step ...
  static PAGODA_DEVICE void load_v(arch::SharedPtr<const Vector> values, int step, int j,
                                   uint32_t (&b)[4][2]) {
    const int lane = arch::lane_idx();
    const int at = (index(lane % 16, lane / 16) ^ 2 * j) + 16 * step * kVectors;
    // Matrices of eight keys and eight pairs of columns: keys 0 .. 7, 8 .. 15, then of the next
    // sixteen columns. A register has two keys and two columns.
    uint32_t pairs[4];
    arch::ldmatrix_transposed<4>(pairs, values + at);
    Vector of_columns, wide[2];
    PAGODA_UNROLL
    for (int i = 0; i < 4; ++i) of_columns.word[i] = arch::byte_permute(pairs[i], 0, 0x3120);
    arch::widen_e4m3_f16(of_columns, wide);
    PAGODA_UNROLL
    for (int n = 0; n < 4; ++n) {
      PAGODA_UNROLL
      for (int i = 0; i < 2; ++i) b[n][i] = wide[n / 2].word[n % 2 + 2 * i];
    }
  }

  // The lane's columns of group `group` of a row of 16-bit elements: eight from here on, and eight.
  static PAGODA_DEVICE int first_column(int group) {
    return 64 * group + 16 * (arch::lane_idx() % 4);
  }

  // A lane's sums of two n-tiles as two quads, which are stored instead of them: each has two
  // neighbouring columns of both rows.
  static PAGODA_HOST_DEVICE constexpr void to_quads(const float (&even)[4], const float (&odd)[4],
                                                    float (&quads)[2][4]) {
    for (int i = 0; i < 2; ++i) {
      quads[i][0] = even[i];
      quads[i][1] = odd[i];
      quads[i][2] = even[i + 2];
      quads[i][3] = odd[i + 2];
    }
  }
  // Which of the quads of all lanes is the fragment of n-tile `n` whose columns are as usual.
  static PAGODA_DEVICE int quad_of(int n) {
    const int lane = arch::lane_idx(), q = lane % 4;
    return (n - n % 2 + q % 2) * 32 + (lane - q + n % 2 * 2 + q / 2);
  }
};

}  // namespace pagoda::kernels::kv_buffer
