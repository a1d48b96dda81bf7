// Attention with head dims up to 256 x 256, bf16.
#include "kernels/mha_sm90/instances/on_gpu.hpp"

namespace pagoda::mha_sm90 {

Family<OnGpu> d256_bf16() { return make_family<OnGpu, arch::BFloat16, 256, 256>(); }

}  // namespace pagoda::mha_sm90
