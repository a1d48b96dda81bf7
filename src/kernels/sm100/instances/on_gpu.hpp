// The instances on a GPU: each shape is a translation unit of its own.
#pragma once

#include "kernels/attention/instances/on_gpu.hpp"
#include "kernels/sm100/family.hpp"

namespace pagoda::sm100 {

using kernel::OnGpu;

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
