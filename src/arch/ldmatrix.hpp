// 8 x 8 matrices of 16-bit elements between shared memory and registers (ldmatrix sm_75, stmatrix
// sm_90). Lane i of the warp gives the address of row i % 8 of matrix i / 8 (16-byte aligned).
// Register maps: fragment_layout.hpp.
//
//   void ldmatrix<Count>(uint32_t (&out)[Count], SharedPtr<const void> row)            Count 1, 2,
//   4 void ldmatrix_transposed<Count>(uint32_t (&out)[Count], SharedPtr<const void> row) void
//   stmatrix<Count>(SharedPtr<void> row, const uint32_t (&in)[Count]) void
//   stmatrix_transposed<Count>(SharedPtr<void> row, const uint32_t (&in)[Count])
#pragma once

#include "core/target.hpp"

#if PAGODA_ON_GPU
#include "arch/ptx/ldmatrix.hpp"
#else
#include "arch/emu/ldmatrix.hpp"
#endif
