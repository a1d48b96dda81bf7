// Attention with head dims up to 128 x 128, bf16.
#include "kernels/sm90/instances/on_gpu.hpp"

namespace pagoda::sm90 {

Family<OnGpu> d128_bf16() { return make_family<OnGpu, arch::BFloat16, 128, 128>(); }

}  // namespace pagoda::sm90
