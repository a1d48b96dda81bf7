// The instances on a GPU: each shape is a translation unit of its own.
#pragma once

#include "arch/ptx/error.hpp"
#include "arch/ptx/launch.hpp"
#include "kernels/sm90/family.hpp"

namespace pagoda::sm90 {

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
Family<OnGpu> d96_bf16();
Family<OnGpu> d128_bf16();
Family<OnGpu> d192x128_bf16();
Family<OnGpu> d256_bf16();
Family<OnGpu> d64_f16();
Family<OnGpu> d96_f16();
Family<OnGpu> d128_f16();
Family<OnGpu> d192x128_f16();
Family<OnGpu> d256_f16();

}  // namespace pagoda::sm90
