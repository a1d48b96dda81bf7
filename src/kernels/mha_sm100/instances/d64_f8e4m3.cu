// Attention with head dims up to 64, f8e4m3.
#include "kernels/mha_sm100/instances/on_gpu.hpp"

namespace pagoda::mha_sm100 {

Family<OnGpu> d64_f8e4m3() { return make_family<OnGpu, arch::Float8E4M3, arch::BFloat16, 64>(); }

}  // namespace pagoda::mha_sm100
