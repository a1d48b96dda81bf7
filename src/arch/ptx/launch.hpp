// Launches a kernel on the GPU: a struct with Params, Storage, run(), kThreads, kClusterSize and
// kMinArch. On an architecture that lacks the kernel's instructions its body is empty.
//
// CUDA C++ Programming Guide, "Programmatic Dependent Launch and Synchronization", "Thread Block
// Clusters", "Grid Constants".
#pragma once

#include <cuda_runtime.h>
#include <mutex>
#include <set>
#include <utility>

#include "arch/layout/types.hpp"
#include "core/target.hpp"

namespace pagoda::arch {
inline namespace ptx {

#if defined(__CUDA_ARCH__)
inline constexpr int kTargetArch = __CUDA_ARCH__ / 10;
#else
inline constexpr int kTargetArch = 0;
#endif

// wgmma exists on sm_90 only: a kernel that uses it has kMaxArch = 90.
template <class Kernel>
PAGODA_HOST_DEVICE constexpr bool runs_on(int arch) {
  if (arch < Kernel::kMinArch) return false;
  if constexpr (requires { Kernel::kMaxArch; }) return arch <= Kernel::kMaxArch;
  return true;
}

// Minimum of resident CTAs per SM; one unless the kernel has kCtasPerSm.
template <class Kernel>
constexpr int ctas_per_sm() {
  if constexpr (requires { Kernel::kCtasPerSm; }) return Kernel::kCtasPerSm;
  return 1;
}

// Without the minimum of CTAs ptxas does not know the registers per thread at entry and ignores
// setmaxnreg.
template <class Kernel>
__global__ void __launch_bounds__(Kernel::kThreads, ctas_per_sm<Kernel>())
    kernel_entry(const __grid_constant__ typename Kernel::Params params) {
  if constexpr (runs_on<Kernel>(kTargetArch)) Kernel::run(params);
}

// Programmatic dependent launch: the kernel may start before the previous kernel of the stream has
// ended, and accesses no global memory before grid_dependency_wait.
template <class Kernel>
constexpr bool is_dependent() {
  if constexpr (requires { Kernel::kIsDependent; }) return Kernel::kIsDependent;
  return false;
}

struct LaunchOptions {
  cudaStream_t stream = nullptr;
};

// Calls cudaFuncSetAttribute once per kernel and device: it takes longer than the rest of a launch.
template <class Params>
cudaError_t allow_shared_memory(void (*entry)(Params), size_t bytes) {
  static std::mutex mutex;
  static std::set<std::pair<void (*)(Params), int>> done;
  int device = 0;
  if (cudaError_t error = cudaGetDevice(&device); error != cudaSuccess) return error;
  const std::scoped_lock lock(mutex);
  if (done.contains({entry, device})) return cudaSuccess;
  const cudaError_t error = cudaFuncSetAttribute(entry, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                                 static_cast<int>(bytes));
  if (error == cudaSuccess) done.insert({entry, device});
  return error;
}

template <class Kernel>
cudaError_t launch(Dim3 grid, const typename Kernel::Params& params, LaunchOptions options = {}) {
  auto* entry = kernel_entry<Kernel>;
  const size_t bytes = sizeof(typename Kernel::Storage);
  if (cudaError_t error = allow_shared_memory(entry, bytes); error != cudaSuccess) return error;
  cudaLaunchAttribute attributes[2] = {};
  unsigned count = 0;
  if (Kernel::kClusterSize > 1) {
    attributes[count].id = cudaLaunchAttributeClusterDimension;
    attributes[count++].val.clusterDim = {static_cast<unsigned>(Kernel::kClusterSize), 1, 1};
  }
  if (is_dependent<Kernel>()) {
    attributes[count].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[count++].val.programmaticStreamSerializationAllowed = 1;
  }
  cudaLaunchConfig_t config = {};
  config.gridDim = {static_cast<unsigned>(grid.x), static_cast<unsigned>(grid.y),
                    static_cast<unsigned>(grid.z)};
  config.blockDim = {static_cast<unsigned>(Kernel::kThreads), 1, 1};
  config.dynamicSmemBytes = bytes;
  config.stream = options.stream;
  config.attrs = attributes;
  config.numAttrs = count;
  return cudaLaunchKernelEx(&config, entry, params);
}

}  // namespace ptx
}  // namespace pagoda::arch
