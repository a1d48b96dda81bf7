// Attention with head dims up to 128 x 128, bf16.
#include "kernels/mha_sm90/instances/on_gpu.hpp"

namespace pagoda::mha_sm90 {

Family<OnGpu> d128_bf16() { return make_family<OnGpu, arch::BFloat16, 128, 128>(); }

}  // namespace pagoda::mha_sm90
