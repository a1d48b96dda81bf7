// The instruction wrappers of <cuda/ptx>; every header of this folder includes this file instead.
// Its tcgen05 wrappers are guarded by the feature macro of sm_100a (CUDA 13.0). sm_103a has the
// same instructions but another macro, so that macro is defined here around the include. NVRTC,
// which has no such header, gets the wrappers of nvrtc_ptx.hpp.
#pragma once

#if defined(__CUDACC_RTC__)
#include "arch/ptx/nvrtc_ptx.hpp"
#elif defined(__CUDA_ARCH_FEAT_SM103_ALL) && !defined(__CUDA_ARCH_FEAT_SM100_ALL)
#define __CUDA_ARCH_FEAT_SM100_ALL 1
#include <cuda/ptx>
#undef __CUDA_ARCH_FEAT_SM100_ALL
#else
#include <cuda/ptx>
#endif
