// Which matrix element each register element of a lane holds: v_mfma_f32_32x32x8 and
// v_mfma_f32_16x16x16 with f16 or bf16 operands (gfx942), M = N = m = 32 or 16, lane 0 .. 63.
// Operand element e 0 .. 3 is half e % 2 of register e / 2. CDNA3 ISA, "Matrix Arithmetic
// Instructions", as AMD's matrix instruction calculator 1.3.2 evaluates it; no AMD GPU has run it
// yet.
#pragma once

#include <cstdint>

#include "arch/layout/fragment_layout.hpp"
#include "core/target.hpp"

namespace pagoda::arch {

// A (m, k).
PAGODA_HOST_DEVICE constexpr MatrixIndex mfma_a(int32_t m, int32_t lane, int32_t e) {
  return {lane % m, 4 * (lane / m) + e};
}

// B (k, n).
PAGODA_HOST_DEVICE constexpr MatrixIndex mfma_b(int32_t m, int32_t lane, int32_t e) {
  return {4 * (lane / m) + e, lane % m};
}

// C and D, fp32, register i 0 .. m * m / 64 - 1. Four registers are the map of B, so P^T is made
// from S^T = K Q^T in place, without moving between lanes.
PAGODA_HOST_DEVICE constexpr MatrixIndex mfma_accumulator(int32_t m, int32_t lane, int32_t i) {
  return {8 * (i / 4) + 4 * (lane / m) + i % 4, lane % m};
}

}  // namespace pagoda::arch
