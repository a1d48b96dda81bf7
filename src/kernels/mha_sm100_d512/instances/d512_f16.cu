// Attention with head dims of 257 to 512, f16.
#include "kernels/mha_sm100_d512/instances/on_gpu.hpp"

namespace pagoda::mha_sm100_d512 {

Family<OnGpu> d512_f16() { return make_family<OnGpu, arch::Half, arch::Half, 512>(); }

}  // namespace pagoda::mha_sm100_d512
