// OnGpu: launches of attention kernels on a GPU.
#pragma once

#include "arch/ptx/error.hpp"
#include "arch/ptx/launch.hpp"
#include "arch/ptx/tma.hpp"
#include "kernels/common/instance.hpp"

namespace pagoda::kernels {

struct OnGpu {
  using Context = cudaStream_t;

  template <class Family, size_t shape, size_t variant>
  static void launch(int32_t ctas, const LaunchArguments& arguments, cudaStream_t& stream) {
    using Kernel = typename KernelOf<Family, shape, variant>::type;
    const auto params = make_params<typename Kernel::Params>(arguments, arch::make_tensor_map);
    arch::check(
        arch::launch<Kernel>({ctas}, params,
                             {.stream = stream, .most_ctas_per_sm = arguments.most_ctas_per_sm}),
        "launching attention");
  }
};

}  // namespace pagoda::kernels
