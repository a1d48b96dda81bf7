// The instances on a GPU: each shape is a translation unit of its own.
#pragma once

#include "arch/ptx/error.hpp"
#include "arch/ptx/launch.hpp"
#include "kernels/sm100/family.hpp"

namespace pagoda::sm100 {

struct OnGpu {
  using Context = cudaStream_t;

  template <class K>
  static void launch(int32_t ctas, const LaunchArguments& arguments, cudaStream_t& stream) {
    arch::check(
        arch::launch<K>({ctas}, make_params(arguments, arch::make_tensor_map), {.stream = stream}),
        "launching attention");
  }
};

Family<OnGpu> d64_bf16();
Family<OnGpu> d128_bf16();
Family<OnGpu> d64_f16();
Family<OnGpu> d128_f16();
Family<OnGpu> d64_f8e4m3();
Family<OnGpu> d128_f8e4m3();
Family<OnGpu> pair_d128_bf16();
Family<OnGpu> pair_d128_f16();
Family<OnGpu> pair_d128_f8e4m3();

}  // namespace pagoda::sm100
