// Attention with head dims of 257 to 512, f8e4m3.
#include "kernels/mha_sm100_d512/instances/on_gpu.hpp"

namespace pagoda::mha_sm100_d512 {

Family<OnGpu> d512_f8e4m3() { return make_family<OnGpu, arch::Float8E4M3, arch::BFloat16, 512>(); }

}  // namespace pagoda::mha_sm100_d512
