// For instance.cpp: the definition of instance(), and Launcher, which is OnGpu under nvcc and
// OnEmulator under the host compiler.
#pragma once

#include "core/target.hpp"
#include "kernels/common/instance.hpp"

#if PAGODA_ON_NVIDIA
#include "kernels/common/on_gpu.hpp"
#else
#include "kernels/common/on_emulator.hpp"
#endif

namespace pagoda::kernels {

#if PAGODA_ON_NVIDIA
using Launcher = OnGpu;
#else
using Launcher = OnEmulator;
#endif

namespace detail {

template <class Launcher, class Family, size_t shape, size_t... variant>
LaunchFunctions<Launcher, Family> functions_of(std::index_sequence<variant...> /*variants*/) {
  return {Launcher::template launch<typename KernelOf<Family, shape, variant>::type>...};
}

}  // namespace detail

template <class Launcher, class Family, size_t shape>
LaunchFunctions<Launcher, Family> instance() {
  return detail::functions_of<Launcher, Family, shape>(
      std::make_index_sequence<Family::kNumVariants>());
}

}  // namespace pagoda::kernels
