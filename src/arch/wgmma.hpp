// Matrix products of a warpgroup (wgmma.mma_async, sm_90a): M = 64, K = 32 bytes, fp32 sums in registers;
// B in shared memory, A there or in registers. Register maps: fragment_layout.hpp; descriptors:
// smem_descriptor.hpp, operand_tile.hpp.
//
//   wgmma_fence()                 each group starts with it: registers written so far are seen
//   wgmma_commit_group()
//   wgmma_wait_group<N>()         at most N groups are in flight; the others' sums may be touched
//   wgmma_pin(registers)          no instruction: the compiler must have the registers' final values
//                                 here and takes them as changed (before a fence, after a wait)
//   struct Wgmma<T, N, Major a = kK, Major b = kK>
//                                 T = BFloat16, Half, Float8E4M3 (K-major only); N = 8 .. 256 step 8
//     static ss(float (&d)[N / 2], SmemDescriptor a, SmemDescriptor b, bool accumulate)
//     static rs(float (&d)[N / 2], const uint32_t (&a)[4], SmemDescriptor b, bool accumulate)
//                                 accumulate == false: D = A B
#pragma once

#include "core/target.hpp"

#if PAGODA_ON_GPU
#include "arch/ptx/wgmma.hpp"
#else
#include "arch/emu/wgmma.hpp"
#endif
