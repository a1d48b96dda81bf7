// Attention with head dims of 257 to 512, f8e4m3.
#include "kernels/sm100_deep/instances/on_gpu.hpp"

namespace pagoda::sm100_deep {

Family<OnGpu> d512_f8e4m3() { return make_family<OnGpu, arch::Float8E4M3, arch::BFloat16, 512>(); }

}  // namespace pagoda::sm100_deep
