// Attention with head dims of 257 to 512, bf16.
#include "kernels/sm100_deep/instances/on_gpu.hpp"

namespace pagoda::sm100_deep {

Family<OnGpu> d512_bf16() { return make_family<OnGpu, arch::BFloat16, arch::BFloat16, 512>(); }

}  // namespace pagoda::sm100_deep
