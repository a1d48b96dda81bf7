// Matrix products of a warpgroup (wgmma.mma_async, sm_90a): M = 64, K = 32 bytes, fp32 accumulators
// in registers; B in shared memory, A there or in registers. Register maps: fragment_layout.hpp;
// descriptors: smem_descriptor.hpp, operand_tile.hpp.
//
//   wgmma_fence()              before the first product of a group: orders the warpgroup's register
//                              writes before the products' reads
//   wgmma_commit_group()
//   wgmma_wait_group<N>()      waits until at most N groups are in flight; accumulators of the
//                              completed groups may be accessed
//   wgmma_wait_group_after<N>(value)   the same, not before `value` is computed, which must be >= 0
//                              or NaN: the compiler may otherwise wait first and compute then
//   wgmma_wait_group_here<N>(value)    the same, not before what stands above it is computed; the
//                              compiler must not know `value` >= 0, which all lanes have
//   wgmma_pin(registers)       no instruction: the compiler computes the registers' final values
//                              before and assumes that they change (before a fence, after a wait)
//   struct Wgmma<T, N, Major a = kK, Major b = kK>
//                              T = BFloat16, Half, Float8E4M3 (K-major only); N = 8 .. 256 step 8
//     static ss(float (&d)[N / 2], SmemDescriptor a, SmemDescriptor b, bool accumulate)
//     static rs(float (&d)[N / 2], const uint32_t (&a)[4], SmemDescriptor b, bool accumulate)
//                              accumulate == false: D = A B
#pragma once

#include "core/target.hpp"

#if PAGODA_ON_GPU
#include "arch/ptx/wgmma.hpp"
#else
#include "arch/emu/wgmma.hpp"
#endif
