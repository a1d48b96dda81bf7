// Which machine a kernel source is compiled for. nvcc: NVIDIA GPUs. clang -x hip: AMD GPUs. Any
// other compiler: the emulator (`arch/emu`), where the same source is ordinary C++.
#pragma once

#if defined(__CUDACC__)
#define PAGODA_ON_NVIDIA 1
#define PAGODA_ON_AMD 0
#define PAGODA_DEVICE __device__ __forceinline__
#define PAGODA_HOST_DEVICE __host__ __device__ __forceinline__
#define PAGODA_DEVICE_CALL __device__ __noinline__  // rarely executed code
#define PAGODA_UNROLL _Pragma("unroll")
#define PAGODA_NO_UNROLL _Pragma("unroll 1")
#elif defined(__HIP__)
#define PAGODA_ON_NVIDIA 0
#define PAGODA_ON_AMD 1
#define PAGODA_DEVICE __attribute__((device, always_inline)) inline
#define PAGODA_HOST_DEVICE __attribute__((host, device, always_inline)) inline
#define PAGODA_DEVICE_CALL __attribute__((device, noinline)) inline
#define PAGODA_UNROLL _Pragma("unroll")
#define PAGODA_NO_UNROLL _Pragma("unroll 1")
#else
#define PAGODA_ON_NVIDIA 0
#define PAGODA_ON_AMD 0
#define PAGODA_DEVICE inline
#define PAGODA_HOST_DEVICE inline
#define PAGODA_DEVICE_CALL inline
#define PAGODA_UNROLL
#define PAGODA_NO_UNROLL
#endif
#define PAGODA_ON_GPU (PAGODA_ON_NVIDIA || PAGODA_ON_AMD)

#include "core/device_functions.hpp"
