// Attention by pairs of CTAs with head dims up to 128, e4m3.
#include "kernels/mha_sm100/instances/on_gpu.hpp"

namespace pagoda::mha_sm100 {

Family<OnGpu> pair_d128_f8e4m3() {
  return make_family<OnGpu, arch::Float8E4M3, arch::BFloat16, 128, 2>();
}

}  // namespace pagoda::mha_sm100
