// The instances on a GPU: each shape is a translation unit of its own.
#pragma once

#include "kernels/common/on_gpu.hpp"
#include "kernels/mha_sm90/family.hpp"

namespace pagoda::mha_sm90 {

using kernels::OnGpu;

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

}  // namespace pagoda::mha_sm90
