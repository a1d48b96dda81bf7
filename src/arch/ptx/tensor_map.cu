// Encodes CUtensorMaps (CUDA driver API, cuTensorMapEncodeTiled). The driver's function is looked
// up at run time: the library does not link to libcuda, and starts on machines without a driver.
#include <cuda.h>
#include <cuda_runtime.h>
#include <stdexcept>
#include <string>

#include "arch/ptx/tma.hpp"

namespace pagoda::arch {
inline namespace ptx {

namespace {

using Encode = decltype(&cuTensorMapEncodeTiled);

Encode find_encode() {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
  const cudaError_t error = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function,
                                                             12000, cudaEnableDefault, &result);
  if (error != cudaSuccess || result != cudaDriverEntryPointSuccess || function == nullptr) {
    throw std::runtime_error("the driver has no cuTensorMapEncodeTiled (CUDA 12.0 or later)");
  }
  return reinterpret_cast<Encode>(function);
}

}  // namespace

TensorMap make_tensor_map(const TensorMapSpec& spec) {
  static_assert(sizeof(TensorMap) == sizeof(CUtensorMap));
  static const Encode encode_tiled = find_encode();
  TensorMap map;
  const CUresult error = encode_tiled(
      reinterpret_cast<CUtensorMap*>(&map), static_cast<CUtensorMapDataType>(spec.type),
      static_cast<cuuint32_t>(spec.rank), reinterpret_cast<void*>(spec.address), spec.dims,
      spec.strides_bytes, spec.box, spec.element_strides, CU_TENSOR_MAP_INTERLEAVE_NONE,
      static_cast<CUtensorMapSwizzle>(tensor_map_code(spec.swizzle)),
      static_cast<CUtensorMapL2promotion>(spec.l2_promotion),
      static_cast<CUtensorMapFloatOOBfill>(spec.oob_fill));
  if (error != CUDA_SUCCESS) {
    throw std::runtime_error("cuTensorMapEncodeTiled rejected the tensor map (CUresult " +
                             std::to_string(static_cast<int>(error)) + ")");
  }
  return map;
}

}  // namespace ptx
}  // namespace pagoda::arch
