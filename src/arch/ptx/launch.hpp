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
inline cudaError_t allow_shared_memory(const void* entry, int device, int32_t bytes) {
  static std::mutex mutex;
  static std::map<std::pair<const void*, int>, int32_t> allowed;
  const std::scoped_lock lock(mutex);
  int32_t& most = allowed[{entry, device}];
  if (bytes <= most) return cudaSuccess;
  const cudaError_t error =
      cudaFuncSetAttribute(entry, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  if (error == cudaSuccess) most = bytes;
  return error;
}

struct MultiprocessorMemory {
  int32_t bytes = 0;     // of shared memory
  int32_t reserved = 0;  // for each CTA
};

// Asks the driver once per device.
inline cudaError_t read_shared_memory(int device, MultiprocessorMemory& memory) {
  static std::mutex mutex;
  static std::map<int, MultiprocessorMemory> known;
  const std::scoped_lock lock(mutex);
  MultiprocessorMemory& of_device = known[device];
  if (of_device.bytes == 0) {
    MultiprocessorMemory read;
    for (const auto& [value, attribute] :
         {std::pair{&read.bytes, cudaDevAttrMaxSharedMemoryPerMultiprocessor},
          std::pair{&read.reserved, cudaDevAttrReservedSharedMemoryPerBlock}}) {
      const cudaError_t error = cudaDeviceGetAttribute(value, attribute, device);
      if (error != cudaSuccess) return error;
    }
    of_device = read;
  }
  memory = of_device;
  return cudaSuccess;
}

// Adds to the dynamic shared memory of a CTA what keeps a multiprocessor from taking more than
// `most_ctas` of them.
inline cudaError_t limit_ctas_per_sm(int device, int32_t most_ctas, int32_t& bytes) {
  MultiprocessorMemory memory;
  const cudaError_t error = read_shared_memory(device, memory);
  if (error == cudaSuccess) {
    bytes = shared_bytes_for(bytes, most_ctas, memory.bytes, memory.reserved);
  }
  return error;
}

// `entry`: a __global__ function, or a cudaKernel_t of a loaded library. `params`: its parameter.
inline cudaError_t launch(const void* entry, LaunchShape shape, Dim3 grid, const void* params,
                          LaunchOptions options) {
  int device = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (error == cudaSuccess && options.most_ctas_per_sm > 0) {
    error = limit_ctas_per_sm(device, options.most_ctas_per_sm, shape.shared_bytes);
  }
  if (error == cudaSuccess) error = allow_shared_memory(entry, device, shape.shared_bytes);
  if (error != cudaSuccess) return error;
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
