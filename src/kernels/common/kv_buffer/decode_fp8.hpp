// DecodeFp8: a warp's keys of an e4m3 KV tile in decoding, from shared memory to B fragments of
// f16, which represents every e4m3 number.
//
// The order of the sum over head dims is free, and so is the numbering of the columns of O. They
// are chosen so that a lane's loads are its operands without a shuffle; ldmatrix transposes V in
// pairs of columns. Fp8Tile (mha_sm90/fp8_fragments.hpp) does the same by plain loads of V. With
// q = lane % 4 and g = lane / 4:
//
//        a lane has                                      which are
//   K    key g of eight, columns 64 i + 16 q .. + 15     its share of four k-steps, four columns
//                                                        each
//   V    keys 2 q, 2 q + 1, 2 q + 8, 2 q + 9 of sixteen, column g of the first of two n-tiles of O,
//        columns 2 g, 2 g + 1 of sixteen                 and column g of the second
//
// So Q has its columns in K's order, and a lane's accumulators of two n-tiles are columns 4 q ..
// 4 q + 3 of sixteen, in each of its two rows.
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

  // Where vector `vector` of row `row` of the warp's keys is. Neither loads of K and V nor the copy
  // of eight vectors of neighbouring rows have a bank conflict.
  static PAGODA_HOST_DEVICE constexpr int index(int row, int vector) {
    static_assert(kVectors == 4 || kVectors == 8 || kVectors == 16);
    const int swizzle = row / 2 % 4 + (kVectors >= 8 ? row % 2 * 4 : 0);
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

  // First of the lane's 16 neighbouring columns in group `group` of a row of Q.
  static PAGODA_DEVICE int first_column(int group) {
    return 64 * group + 16 * (arch::lane_idx() % 4);
  }

  // Regroups a lane's accumulators of two n-tiles by pairs of columns: quads[i] has columns
  // 4 q + 2 i and 4 q + 2 i + 1 of sixteen, of both rows.
  static PAGODA_HOST_DEVICE constexpr void to_quads(const float (&even)[4], const float (&odd)[4],
                                                    float (&quads)[2][4]) {
    for (int i = 0; i < 2; ++i) {
      quads[i][0] = even[i];
      quads[i][1] = odd[i];
      quads[i][2] = even[i + 2];
      quads[i][3] = odd[i + 2];
    }
  }
  // Quads of a warp are in memory as [n-tile][lane], quads[i] of a lane of two n-tiles in the i-th.
  // The lane's place there, which differs for i because two lanes load both at the same place else.
  static PAGODA_DEVICE int lane_of_quad(int i) { return arch::lane_idx() ^ 2 * i; }
  // The index of the lane's accumulators of n-tile `n` as they are usually numbered: columns
  // 8 n + 2 q and 8 n + 2 q + 1.
  static PAGODA_DEVICE int index_of_quad(int n) {
    const int lane = arch::lane_idx(), q = lane % 4, i = q % 2;
    return (n - n % 2 + i) * 32 + ((lane - q + n % 2 * 2 + q / 2) ^ 2 * i);
  }
};

}  // namespace pagoda::kernels::kv_buffer
