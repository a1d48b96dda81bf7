// The instances on a GPU: each shape is a translation unit of its own.
#pragma once

#include "kernels/sm100/instances/on_gpu.hpp"
#include "kernels/sm100_deep/family.hpp"

namespace pagoda::sm100_deep {

using sm100::OnGpu;

Family<OnGpu> d256_bf16();
Family<OnGpu> d512_bf16();
Family<OnGpu> d256_f16();
Family<OnGpu> d512_f16();
Family<OnGpu> d256_f8e4m3();
Family<OnGpu> d512_f8e4m3();

}  // namespace pagoda::sm100_deep
