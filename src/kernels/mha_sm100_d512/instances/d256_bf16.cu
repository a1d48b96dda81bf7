// Attention with head dims of 129 to 256, bf16.
#include "kernels/mha_sm100_d512/instances/on_gpu.hpp"

namespace pagoda::mha_sm100_d512 {

Family<OnGpu> d256_bf16() { return make_family<OnGpu, arch::BFloat16, arch::BFloat16, 256>(); }

}  // namespace pagoda::mha_sm100_d512
