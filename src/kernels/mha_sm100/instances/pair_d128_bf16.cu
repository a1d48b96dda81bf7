// Attention by pairs of CTAs with head dims up to 128, bf16.
#include "kernels/mha_sm100/instances/on_gpu.hpp"

namespace pagoda::mha_sm100 {

Family<OnGpu> pair_d128_bf16() {
  return make_family<OnGpu, arch::BFloat16, arch::BFloat16, 128, 2>();
}

}  // namespace pagoda::mha_sm100
