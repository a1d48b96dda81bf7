// Matrix products of one warp, operands in registers (mma.sync, sm_80; e4m3 sm_89), fp32 sums: D += A B.
// Register maps: fragment_layout.hpp.
//
//   mma_m16n8k16<T>(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2])     BFloat16, Half
//   mma_m16n8k8<T>(float (&d)[4], const uint32_t (&a)[2], const uint32_t (&b)[1])      BFloat16, Half
//   mma_m16n8k32<T>(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2])     Float8E4M3
#pragma once

#include "core/target.hpp"

#if PAGODA_ON_GPU
#include "arch/ptx/mma.hpp"
#else
#include "arch/emu/mma.hpp"
#endif
