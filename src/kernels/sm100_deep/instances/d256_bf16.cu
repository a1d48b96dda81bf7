// Attention with head dims of 129 to 256, bf16.
#include "kernels/sm100_deep/instances/on_gpu.hpp"

namespace pagoda::sm100_deep {

Family<OnGpu> d256_bf16() { return make_family<OnGpu, arch::BFloat16, arch::BFloat16, 256>(); }

}  // namespace pagoda::sm100_deep
