// For instance.cpp: the definition of instance(), and Launcher, which is OnGpu under nvcc,
// HipKernels under clang -x hip, and under the host compiler OnEmulator, or OnHip where the build
// defines PAGODA_HOST_OF_HIP.
#pragma once

#include <type_traits>

#include "core/target.hpp"
#include "kernels/common/instance.hpp"

#if PAGODA_ON_NVIDIA
#include "kernels/common/on_gpu.hpp"
#elif PAGODA_ON_AMD
#include "kernels/common/hip_kernel.hpp"
#elif defined(PAGODA_HOST_OF_HIP)
#include "kernels/common/on_hip.hpp"
#else
#include "kernels/common/on_emulator.hpp"
#endif

namespace pagoda::kernels {

#if PAGODA_ON_NVIDIA
using Launcher = OnGpu;
#elif PAGODA_ON_AMD
using Launcher = HipKernels;
#elif defined(PAGODA_HOST_OF_HIP)
using Launcher = OnHip;
#else
using Launcher = OnEmulator;
#endif

namespace detail {

// Null where the family has no such kernel.
template <class Launcher, class Family, size_t shape, size_t variant>
constexpr LaunchFunction<Launcher> function_of() {
  if constexpr (!std::is_void_v<typename KernelOf<Family, shape, variant>::type>) {
    return Launcher::template launch<Family, shape, variant>;
  }
  return nullptr;
}

template <class Launcher, class Family, size_t shape, size_t... variant>
LaunchFunctions<Launcher, Family> functions_of(std::index_sequence<variant...> /*variants*/) {
  return {function_of<Launcher, Family, shape, variant>()...};
}

}  // namespace detail

template <class Launcher, class Family, size_t shape>
LaunchFunctions<Launcher, Family> instance() {
  return detail::functions_of<Launcher, Family, shape>(
      std::make_index_sequence<Family::kNumVariants>());
}

}  // namespace pagoda::kernels
