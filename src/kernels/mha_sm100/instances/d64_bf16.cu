// Attention with head dims up to 64, bf16.
#include "kernels/mha_sm100/instances/on_gpu.hpp"

namespace pagoda::mha_sm100 {

Family<OnGpu> d64_bf16() { return make_family<OnGpu, arch::BFloat16, arch::BFloat16, 64>(); }

}  // namespace pagoda::mha_sm100
