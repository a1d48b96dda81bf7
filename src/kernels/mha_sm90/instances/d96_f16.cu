// Attention with head dims up to 96 x 96, f16.
#include "kernels/mha_sm90/instances/on_gpu.hpp"

namespace pagoda::mha_sm90 {

Family<OnGpu> d96_f16() { return make_family<OnGpu, arch::Half, 96, 96>(); }

}  // namespace pagoda::mha_sm90
