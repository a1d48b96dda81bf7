// Matrix products of one warp, operands in registers (mma.sync, sm_80; e4m3 sm_89), fp32
// accumulators: D += A B. Register maps: fragment_layout.hpp. `d` is float (&)[4], `a` and `b` are
// const uint32_t (&)[]:
//
//   mma_m16n8k16<T>(d, a[4], b[2])     BFloat16, Half
//   mma_m16n8k8<T>(d, a[2], b[1])      BFloat16, Half
//   mma_m16n8k32<T>(d, a[4], b[2])     Float8E4M3
//
// The warp consumer of mha_sm90 uses m16n8k16; the other two are for families of sm_80 and sm_89.
#pragma once

#include "core/target.hpp"

#if PAGODA_ON_NVIDIA
#include "arch/ptx/mma.hpp"
#else
#include "arch/emu/mma.hpp"
#endif
