// The instances on a GPU: each shape is a translation unit of its own.
#pragma once

#include "kernels/common/on_gpu.hpp"
#include "kernels/mha_sm100_d512/family.hpp"

namespace pagoda::mha_sm100_d512 {

using kernels::OnGpu;

Family<OnGpu> d256_bf16();
Family<OnGpu> d512_bf16();
Family<OnGpu> d256_f16();
Family<OnGpu> d512_f16();
Family<OnGpu> d256_f8e4m3();
Family<OnGpu> d512_f8e4m3();

}  // namespace pagoda::mha_sm100_d512
