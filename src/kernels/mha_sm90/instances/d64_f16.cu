// Attention with head dims up to 64 x 64, f16.
#include "kernels/mha_sm90/instances/on_gpu.hpp"

namespace pagoda::mha_sm90 {

Family<OnGpu> d64_f16() { return make_family<OnGpu, arch::Half, 64, 64>(); }

}  // namespace pagoda::mha_sm90
