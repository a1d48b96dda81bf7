// Lists of architectures that code is compiled for ("80.90.100"), and which GPUs run that code.
#pragma once

#include <cstdint>
#include <string_view>

#include "kernels/common/archs.hpp"

namespace pagoda::cuda {

// Whether the list names `arch`.
[[nodiscard]] constexpr bool is_listed(std::string_view list, int32_t arch) {
  int32_t number = 0;
  for (const char c : list) {
    if (c != '.') {
      number = 10 * number + (c - '0');
    } else {
      if (number != 0 && number == arch) return true;
      number = 0;
    }
  }
  return number != 0 && number == arch;
}

// Whether code of a family, compiled for those of its architectures that `held` lists, runs on a
// GPU of compute capability `arch`.
[[nodiscard]] bool has_code(const kernels::Archs& archs, int32_t arch, std::string_view held);

}  // namespace pagoda::cuda
