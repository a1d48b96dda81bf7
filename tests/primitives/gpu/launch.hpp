// Launches of the primitive tests on the GPU. Errors end the case, not the run: they are thrown.
#pragma once

#include <cuda_runtime.h>
#include <stdexcept>
#include <string>

#include "../case.hpp"
#include "arch/ptx/launch.hpp"
#include "arch/ptx/tma.hpp"

namespace pagoda::primitives {

inline void check(cudaError_t error, const char* what) {
  if (error != cudaSuccess) {
    throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(error));
  }
}

template <class Kernel>
void launch(arch::Dim3 grid, const typename Kernel::Params& params, const Buffers&) {
  check(arch::launch<Kernel>(grid, params), "launch");
}

inline arch::TensorMap tensor_map(const arch::TensorMapSpec& spec) {
  return arch::make_tensor_map(spec);
}

}  // namespace pagoda::primitives
