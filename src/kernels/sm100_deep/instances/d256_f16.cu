// Attention with head dims of 129 to 256, f16.
#include "kernels/sm100_deep/instances/on_gpu.hpp"

namespace pagoda::sm100_deep {

Family<OnGpu> d256_f16() { return make_family<OnGpu, arch::Half, arch::Half, 256>(); }

}  // namespace pagoda::sm100_deep
