// The kernels of a code object: what clang -x hip makes of a family's instance.cpp. on_hip.hpp
// launches them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/common/attention_params.hpp"
#include "kernels/common/instance.hpp"

namespace pagoda::kernels {

// Wavefronts on each of the four SIMDs of a compute unit, from the workgroups that a compute unit
// shall hold: the registers of a thread are limited to 512 / waves.
template <class Kernel>
constexpr int least_waves() {
  if constexpr (requires { Kernel::kCtasPerSm; }) {
    return (Kernel::kCtasPerSm * Kernel::kThreads + 255) / 256;
  }
  return 1;
}

template <class Family, size_t shape, size_t variant>
using HipKernelOf = typename KernelOf<Family, shape, variant>::type;

template <class Family, size_t shape, size_t variant>
__attribute__((global,
               amdgpu_flat_work_group_size(HipKernelOf<Family, shape, variant>::kThreads,
                                           HipKernelOf<Family, shape, variant>::kThreads),
               amdgpu_waves_per_eu(least_waves<HipKernelOf<Family, shape, variant>>()))) void
hip_kernel(const AttentionArguments /*params*/) {
  // Where they lie, in constant memory: a parameter would be copied to scratch memory as soon as
  // the kernel indexes an array in it (the nodes of a mask).
  const auto* params = (const AttentionArguments*)__builtin_amdgcn_kernarg_segment_ptr();
  HipKernelOf<Family, shape, variant>::run(*params);
}

// In the place of a Launcher: its functions exist to instantiate the kernels.
struct HipKernels {
  struct Context;

  template <class Family, size_t shape, size_t variant>
  static void launch(int32_t, const LaunchArguments&, Context&) {
    static_cast<void>(hip_kernel<Family, shape, variant>);
  }
};

}  // namespace pagoda::kernels
