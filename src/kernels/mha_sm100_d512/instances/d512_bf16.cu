// Attention with head dims of 257 to 512, bf16.
#include "kernels/mha_sm100_d512/instances/on_gpu.hpp"

namespace pagoda::mha_sm100_d512 {

Family<OnGpu> d512_bf16() { return make_family<OnGpu, arch::BFloat16, arch::BFloat16, 512>(); }

}  // namespace pagoda::mha_sm100_d512
