// Attention with head dims up to 128, f16.
#include "kernels/mha_sm100/instances/on_gpu.hpp"

namespace pagoda::mha_sm100 {

Family<OnGpu> d128_f16() { return make_family<OnGpu, arch::Half, arch::Half, 128>(); }

}  // namespace pagoda::mha_sm100
