// Matrix products of a warpgroup (wgmma.mma_async, sm_90a): M = 64, K = 32 bytes; B in shared
// memory, A in shared memory or in registers, fp32 accumulators in registers. Register maps:
// fragment_layout.hpp; descriptors: smem_descriptor.hpp.
//
//   void wgmma_fence()                   registers written so far are seen by the wgmma that follow
//   (each group starts with it) void wgmma_commit_group() void wgmma_wait_group<N>()           at
//   most N groups are in flight; only then may their accumulators be touched struct Wgmma<T, N,
//   Major a = K, Major b = K>      T = BFloat16, Half, Float8E4M3 (K-major only); N = 8..256 step 8
//     static void ss(float (&d)[N / 2], SmemDescriptor a, SmemDescriptor b, bool accumulate)
//     static void rs(float (&d)[N / 2], const uint32_t (&a)[4], SmemDescriptor b, bool accumulate)
// accumulate == false: D = A B.
#pragma once

#include "core/target.hpp"

#if PAGODA_ON_GPU
#include "arch/ptx/wgmma.hpp"
#else
#include "arch/emu/wgmma.hpp"
#endif
