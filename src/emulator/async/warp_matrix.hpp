// Matrix instructions of one warp: ldmatrix, stmatrix, mma.sync, MFMA. The last lane to arrive
// executes them for all.
#pragma once

#include <cstdint>

#include "emulator/async/matrix_math.hpp"
#include "emulator/machine/machine.hpp"

namespace pagoda::emulator {

// `registers`: of the executing lane, one for each of the `count` matrices.
void load_matrices(uint32_t* registers, int count, const void* row, bool is_transposed,
                   const char* primitive, const Where& where);
void store_matrices(const uint32_t* registers, int count, void* row, bool is_transposed,
                    const char* primitive, const Where& where);

// m16n8: d += a b, operands in the registers of the executing lane.
void multiply_in_warp(ElementType type, int k, float* d, const uint32_t* a, const uint32_t* b,
                      const char* primitive, const Where& where);

// MFMA, by the 64 lanes of a wave: d += a b. D is size x size.
void multiply_in_wave(ElementType type, int size, float* d, const uint32_t* a, const uint32_t* b,
                      const char* primitive, const Where& where);

}  // namespace pagoda::emulator
