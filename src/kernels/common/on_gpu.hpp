// OnGpu: launches of attention kernels on a GPU, as family.hpp wants them of a machine.
#pragma once

#include "arch/layout/tensor_map.hpp"
#include "arch/ptx/error.hpp"
#include "arch/ptx/launch.hpp"
#include "arch/ptx/tma.hpp"

namespace pagoda::kernels {

struct OnGpu {
  using Context = cudaStream_t;

  // `Arguments`: the LaunchArguments of the kernel's folder, whose make_params is found with them.
  template <class K, class Arguments>
  static void launch(int32_t ctas, const Arguments& arguments, cudaStream_t& stream) {
    arch::check(
        arch::launch<K>({ctas}, make_params(arguments, arch::make_tensor_map), {.stream = stream}),
        "launching attention");
  }
};

}  // namespace pagoda::kernels
