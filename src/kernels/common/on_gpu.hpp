// OnGpu: launches of attention kernels on a GPU.
#pragma once

#include "arch/ptx/error.hpp"
#include "arch/ptx/launch.hpp"
#include "arch/ptx/tma.hpp"
#include "kernels/common/launch_arguments.hpp"

namespace pagoda::kernels {

struct OnGpu {
  using Context = cudaStream_t;

  template <class Kernel>
  static void launch(int32_t ctas, const LaunchArguments& arguments, cudaStream_t& stream) {
    arch::check(arch::launch<Kernel>({ctas}, make_params(arguments, arch::make_tensor_map),
                                     {.stream = stream}),
                "launching attention");
  }
};

}  // namespace pagoda::kernels
