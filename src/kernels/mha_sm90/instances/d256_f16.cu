// Attention with head dims up to 256 x 256, f16.
#include "kernels/mha_sm90/instances/on_gpu.hpp"

namespace pagoda::mha_sm90 {

Family<OnGpu> d256_f16() { return make_family<OnGpu, arch::Half, 256, 256>(); }

}  // namespace pagoda::mha_sm90
