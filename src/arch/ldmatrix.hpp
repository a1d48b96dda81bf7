// 8 x 8 matrices of 16-bit elements between shared memory and registers (ldmatrix sm_75, stmatrix
// sm_90). Lane i gives the 16-byte aligned address of row i % 8 of matrix i / 8. Register maps:
// fragment_layout.hpp. Count is 1, 2 or 4.
//
//   ldmatrix<Count>(uint32_t (&out)[Count], SharedPtr<const void> row)
//   ldmatrix_transposed<Count>(uint32_t (&out)[Count], SharedPtr<const void> row)
//   stmatrix<Count>(SharedPtr<void> row, const uint32_t (&in)[Count])
//   stmatrix_transposed<Count>(SharedPtr<void> row, const uint32_t (&in)[Count])
//
// No kernel uses stmatrix_transposed yet.
#pragma once

#include "core/target.hpp"

#if PAGODA_ON_NVIDIA
#include "arch/ptx/ldmatrix.hpp"
#else
#include "arch/emu/ldmatrix.hpp"
#endif
