// Matrix products of one wave of 64 lanes, operands in registers (MFMA, gfx90a and later), fp32
// accumulators: D [m][n] += A [m][k] B [k][n]. T: BFloat16, Half. Register maps: mfma_layout.hpp.
//
//   mfma_32x32x8<T>(float (&d)[16], const uint32_t (&a)[2], const uint32_t (&b)[2])
//   mfma_16x16x16<T>(float (&d)[4], const uint32_t (&a)[2], const uint32_t (&b)[2])
#pragma once

#include "core/target.hpp"

#if PAGODA_ON_AMD
#include "arch/hip/mfma.hpp"
#elif !PAGODA_ON_GPU
#include "arch/emu/mfma.hpp"
#endif
