// The instances on a GPU: each shape is a translation unit of its own.
#pragma once

#include "kernels/common/on_gpu.hpp"
#include "kernels/mha_sm100/family.hpp"

namespace pagoda::mha_sm100 {

using kernels::OnGpu;

Family<OnGpu> d64_bf16();
Family<OnGpu> d128_bf16();
Family<OnGpu> d64_f16();
Family<OnGpu> d128_f16();
Family<OnGpu> d64_f8e4m3();
Family<OnGpu> d128_f8e4m3();
Family<OnGpu> pair_d128_bf16();
Family<OnGpu> pair_d128_f16();
Family<OnGpu> pair_d128_f8e4m3();

}  // namespace pagoda::mha_sm100
