// The instances on a GPU: each shape is a translation unit of its own.
#pragma once

#include "kernels/attention/instances/on_gpu.hpp"
#include "kernels/sm90/family.hpp"

namespace pagoda::sm90 {

using kernel::OnGpu;

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
