// Matrix products of one warp, operands in registers (mma.sync, sm_80; e4m3 sm_89), fp32
// accumulators. Register maps: fragment_layout.hpp. D = A B + C with D and C the same registers.
//
//   void mma_m16n8k16<T>(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2])    T =
//   BFloat16, Half void mma_m16n8k8<T>(float (&d)[4], const uint32_t (&a)[2], const uint32_t
//   (&b)[1])     T = BFloat16, Half void mma_m16n8k32<Float8E4M3>(float (&d)[4], const uint32_t
//   (&a)[4], const uint32_t (&b)[2])
#pragma once

#include "core/target.hpp"

#if PAGODA_ON_GPU
#include "arch/ptx/mma.hpp"
#else
#include "arch/emu/mma.hpp"
#endif
