// Family: what kernels::KernelTable asks of the kernels for AMD CDNA3.
#pragma once

#include "kernels/common/archs.hpp"
#include "kernels/common/kv_buffer/family.hpp"
#include "kernels/mha_gfx942/instances.hpp"

namespace pagoda::mha_gfx942 {

struct Family : kernels::kv_buffer::FamilyOf<Chip> {
  static constexpr int32_t kCompiled[] = {942};
  static constexpr kernels::Archs kArchs{kCompiled, false, kernels::Vendor::kAmd};
};

}  // namespace pagoda::mha_gfx942
