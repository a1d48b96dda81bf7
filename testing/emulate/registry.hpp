// The kernels that `pagoda emulate` can run, one line each in registry.cpp.
#pragma once

#include <span>
#include <string_view>

#include "testing/emulate/kernel.hpp"

namespace pagoda::emulate {

[[nodiscard]] std::span<const EmulatedKernel> all_kernels();
[[nodiscard]] const EmulatedKernel* find_kernel(std::string_view name);  // nullptr: none
// Those named after a chip run a whole attention kernel.
[[nodiscard]] bool is_attention(const EmulatedKernel& kernel);

}  // namespace pagoda::emulate
