// Family: what kernels::KernelTable asks of the Hopper kernels for decoding.
#pragma once

#include <memory>
#include <string>

#include "kernels/common/archs.hpp"
#include "kernels/common/kv_buffer/decode_call.hpp"
#include "kernels/common/kv_buffer/family.hpp"
#include "kernels/mha_sm90_decode/instances.hpp"

namespace pagoda::mha_sm90_decode {

struct Family : kernels::kv_buffer::FamilyOf<Chip> {
  static constexpr int32_t kCompiled[] = {90};
  static constexpr kernels::Archs kArchs{kCompiled};

  static core::Fit fit(const Shape& shape, const core::Problem& problem, const Options& options,
                       std::string* reason) {
    return kernels::kv_buffer::fit_decode(shape, problem, options, reason);
  }
};

}  // namespace pagoda::mha_sm90_decode
