// Family: what kernels::KernelTable asks of the kernels for every NVIDIA GPU from sm_80 on.
#pragma once

#include "kernels/common/archs.hpp"
#include "kernels/common/kv_buffer/family.hpp"
#include "kernels/mha_sm80/instances.hpp"

namespace pagoda::mha_sm80 {

struct Family : kernels::kv_buffer::FamilyOf<Chip> {
  // A build for all GPUs has code for sm_80, with PTX, and for sm_90a, where it is measured; a
  // build for the GPUs of a machine has theirs (src/CMakeLists.txt).
  static constexpr int32_t kCompiled[] = {80, 86, 87, 88, 89, 90, 110, 120, 121};
  static constexpr kernels::Archs kArchs{kCompiled, true};
};

}  // namespace pagoda::mha_sm80
