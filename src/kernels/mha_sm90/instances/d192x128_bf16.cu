// Attention with head dims up to 192 x 128, bf16.
#include "kernels/mha_sm90/instances/on_gpu.hpp"

namespace pagoda::mha_sm90 {

Family<OnGpu> d192x128_bf16() { return make_family<OnGpu, arch::BFloat16, 192, 128>(); }

}  // namespace pagoda::mha_sm90
