// The instructions of <cuda/ptx>. Its tcgen05 is enabled for sm_100a by name (CUDA 13.0); sm_103a has the
// same instructions, but no name in it. Every header here includes this one instead.
#pragma once

#if defined(__CUDA_ARCH_FEAT_SM103_ALL) && !defined(__CUDA_ARCH_FEAT_SM100_ALL)
#define __CUDA_ARCH_FEAT_SM100_ALL 1
#include <cuda/ptx>
#undef __CUDA_ARCH_FEAT_SM100_ALL
#else
#include <cuda/ptx>
#endif
