// GpuMachine: what the machines of all tables of CUDA kernels share (kernels::KernelTable).
#pragma once

#include <span>

#include "arch/ptx/device.hpp"
#include "core/kernel.hpp"
#include "kernels/common/on_gpu.hpp"

namespace pagoda::cuda {

// Precondition of all: problem.device is one of arch::devices().
struct GpuMachine {
  using Launcher = kernels::OnGpu;
  static constexpr const char* kBackend = "cuda";

  static const arch::DeviceProperties& properties(const core::Problem& problem) {
    return arch::devices()[static_cast<size_t>(problem.device.index)];
  }
  static int32_t num_sms(const core::Problem& problem, int32_t /*fewest*/) {
    return properties(problem).num_sms;
  }
  static cudaStream_t make_context(const core::Kernel& /*row*/, const core::KernelPlan& /*plan*/,
                                   const core::Problem& /*problem*/,
                                   std::span<std::byte> /*workspace*/,
                                   const core::RunContext& context) {
    return static_cast<cudaStream_t>(context.stream.handle);
  }
  static void finish(cudaStream_t /*stream*/) {}
};

}  // namespace pagoda::cuda
