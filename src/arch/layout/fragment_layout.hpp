// Which matrix element each register element of a thread holds: wgmma, mma.sync, ldmatrix,
// stmatrix. Elements count through the thread's registers: 16-bit element e is half e % 2 of
// register e / 2, 8-bit element e is byte e % 4 of register e / 4. PTX ISA, "Matrix Fragments for
// mma", "Register Fragments" of wgmma.
#pragma once

#include <cstdint>

#include "core/target.hpp"

namespace pagoda::arch {

struct MatrixIndex {
  int32_t row = 0, column = 0;
  friend bool operator==(const MatrixIndex&, const MatrixIndex&) = default;
};

// --- mma.sync, lane 0 .. 31 -------------------------------------------------------------------

// C and D of m16n8, fp32, register i 0 .. 3.
PAGODA_HOST_DEVICE constexpr MatrixIndex mma_accumulator(int32_t lane, int32_t i) {
  return {lane / 4 + 8 * (i >> 1), 2 * (lane % 4) + (i & 1)};
}

// A (m, k) of m16n8k16, e 0 .. 7; of m16n8k8, e 0 .. 3. 16-bit elements.
PAGODA_HOST_DEVICE constexpr MatrixIndex mma_a_16bit(int32_t lane, int32_t e) {
  return {lane / 4 + 8 * ((e >> 1) & 1), 2 * (lane % 4) + (e & 1) + 8 * (e >> 2)};
}

// B (k, n) of m16n8k16, e 0 .. 3; of m16n8k8, e 0 .. 1. 16-bit elements.
PAGODA_HOST_DEVICE constexpr MatrixIndex mma_b_16bit(int32_t lane, int32_t e) {
  return {2 * (lane % 4) + (e & 1) + 8 * (e >> 1), lane / 4};
}

// A (m, k) of m16n8k32, e 0 .. 15. 8-bit elements.
PAGODA_HOST_DEVICE constexpr MatrixIndex mma_a_8bit(int32_t lane, int32_t e) {
  return {lane / 4 + 8 * ((e >> 2) & 1), 4 * (lane % 4) + (e & 3) + 16 * (e >> 3)};
}

// B (k, n) of m16n8k32, e 0 .. 7. 8-bit elements.
PAGODA_HOST_DEVICE constexpr MatrixIndex mma_b_8bit(int32_t lane, int32_t e) {
  return {4 * (lane % 4) + (e & 3) + 16 * (e >> 2), lane / 4};
}

// --- wgmma, M = 64, thread 0 .. 127 of the warpgroup: warp w holds rows 16 w .. 16 w + 15 ------

PAGODA_HOST_DEVICE constexpr MatrixIndex in_warpgroup(int32_t thread, MatrixIndex of_warp) {
  return {16 * (thread / 32) + of_warp.row, of_warp.column};
}

// D, fp32, register i 0 .. N / 2 - 1: four registers per 8 columns.
PAGODA_HOST_DEVICE constexpr MatrixIndex wgmma_accumulator(int32_t thread, int32_t i) {
  const MatrixIndex index = mma_accumulator(thread % 32, i & 3);
  return in_warpgroup(thread, {index.row, index.column + 8 * (i >> 2)});
}

// A (m, k) in registers, k16, e 0 .. 7: the map of two neighbouring blocks of 8 accumulator
// columns, so 16-bit P is made from S in place, without moving between threads.
PAGODA_HOST_DEVICE constexpr MatrixIndex wgmma_a_16bit(int32_t thread, int32_t e) {
  return in_warpgroup(thread, mma_a_16bit(thread % 32, e));
}

// A (m, k) in registers, k32, e 0 .. 15: differs from the accumulator's map.
PAGODA_HOST_DEVICE constexpr MatrixIndex wgmma_a_8bit(int32_t thread, int32_t e) {
  return in_warpgroup(thread, mma_a_8bit(thread % 32, e));
}

// --- ldmatrix, stmatrix: 8 x 8 matrices of 16-bit elements, a register a lane and matrix --------

// The lane that gives the address of row `row` of matrix `matrix`.
PAGODA_HOST_DEVICE constexpr int32_t matrix_row_lane(int32_t matrix, int32_t row) {
  return 8 * matrix + row;
}

// Element e 0 .. 1 of the register, as (row, element of that row).
PAGODA_HOST_DEVICE constexpr MatrixIndex matrix_element(int32_t lane, int32_t e) {
  return {lane / 4, 2 * (lane % 4) + e};
}
PAGODA_HOST_DEVICE constexpr MatrixIndex matrix_element_transposed(int32_t lane, int32_t e) {
  return {2 * (lane % 4) + e, lane / 4};
}

}  // namespace pagoda::arch
