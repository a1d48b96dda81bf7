// Attention with head dims of 257 to 512, f16.
#include "kernels/sm100_deep/instances/on_gpu.hpp"

namespace pagoda::sm100_deep {

Family<OnGpu> d512_f16() { return make_family<OnGpu, arch::Half, arch::Half, 512>(); }

}  // namespace pagoda::sm100_deep
