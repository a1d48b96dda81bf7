// Launches a kernel on the GPU: by its type, or by the entry of a library that was loaded.
//
// CUDA C++ Programming Guide, "Programmatic Dependent Launch and Synchronization", "Thread Block
// Clusters".
#pragma once

#include <cuda_runtime.h>
#include <map>
#include <mutex>
#include <utility>

#include "arch/layout/occupancy.hpp"
#include "arch/layout/types.hpp"
#include "arch/ptx/kernel_entry.hpp"

namespace pagoda::arch {
inline namespace ptx {

struct LaunchOptions {
  cudaStream_t stream = nullptr;
  int32_t most_ctas_per_sm = 0;  // 0: as many as fit
};

// What a launch needs to know of a kernel besides its entry.
struct LaunchShape {
  int32_t threads = 0;       // of a CTA
  int32_t cluster = 1;       // CTAs
  int32_t shared_bytes = 0;  // dynamic
  bool is_dependent = false;
};

// Calls cudaFuncSetAttribute once per kernel, device and size: it takes longer than the rest of a
// launch.
inline cudaError_t allow_shared_memory(const void* entry, int32_t bytes) {
  static std::mutex mutex;
  static std::map<std::pair<const void*, int>, int32_t> allowed;
  int device = 0;
  if (cudaError_t error = cudaGetDevice(&device); error != cudaSuccess) return error;
  const std::scoped_lock lock(mutex);
  int32_t& most = allowed[{entry, device}];
  if (bytes <= most) return cudaSuccess;
  const cudaError_t error =
      cudaFuncSetAttribute(entry, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  if (error == cudaSuccess) most = bytes;
  return error;
}

// Adds to the dynamic shared memory of a CTA what keeps a multiprocessor of the current device from
// taking more than `most_ctas` of them.
inline cudaError_t limit_ctas_per_sm(int32_t most_ctas, int32_t& bytes) {
  int device = 0, per_sm = 0, reserved = 0;
  if (cudaError_t error = cudaGetDevice(&device); error != cudaSuccess) return error;
  for (const auto& [value, attribute] :
       {std::pair{&per_sm, cudaDevAttrMaxSharedMemoryPerMultiprocessor},
        std::pair{&reserved, cudaDevAttrReservedSharedMemoryPerBlock}}) {
    const cudaError_t error = cudaDeviceGetAttribute(value, attribute, device);
    if (error != cudaSuccess) return error;
  }
  bytes = shared_bytes_for(bytes, most_ctas, per_sm, reserved);
  return cudaSuccess;
}

// `entry`: a __global__ function, or a cudaKernel_t of a loaded library. `params`: its parameter.
inline cudaError_t launch(const void* entry, LaunchShape shape, Dim3 grid, const void* params,
                          LaunchOptions options) {
  if (options.most_ctas_per_sm > 0) {
    const cudaError_t error = limit_ctas_per_sm(options.most_ctas_per_sm, shape.shared_bytes);
    if (error != cudaSuccess) return error;
  }
  if (cudaError_t error = allow_shared_memory(entry, shape.shared_bytes); error != cudaSuccess) {
    return error;
  }
  cudaLaunchAttribute attributes[2] = {};
  unsigned count = 0;
  if (shape.cluster > 1) {
    attributes[count].id = cudaLaunchAttributeClusterDimension;
    attributes[count++].val.clusterDim = {static_cast<unsigned>(shape.cluster), 1, 1};
  }
  if (shape.is_dependent) {
    attributes[count].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[count++].val.programmaticStreamSerializationAllowed = 1;
  }
  cudaLaunchConfig_t config = {};
  config.gridDim = {static_cast<unsigned>(grid.x), static_cast<unsigned>(grid.y),
                    static_cast<unsigned>(grid.z)};
  config.blockDim = {static_cast<unsigned>(shape.threads), 1, 1};
  config.dynamicSmemBytes = static_cast<size_t>(shape.shared_bytes);
  config.stream = options.stream;
  config.attrs = attributes;
  config.numAttrs = count;
  void* arguments[] = {const_cast<void*>(params)};
  return cudaLaunchKernelExC(&config, entry, arguments);
}

template <class Kernel>
cudaError_t launch(Dim3 grid, const typename Kernel::Params& params, LaunchOptions options = {}) {
  return launch(reinterpret_cast<const void*>(kernel_entry<Kernel>),
                {.threads = Kernel::kThreads,
                 .cluster = Kernel::kClusterSize,
                 .shared_bytes = static_cast<int32_t>(sizeof(typename Kernel::Storage)),
                 .is_dependent = is_dependent<Kernel>()},
                grid, &params, options);
}

}  // namespace ptx
}  // namespace pagoda::arch
