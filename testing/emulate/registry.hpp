// The kernels that `pagoda emulate` can run, one line each in registry.cpp.
#pragma once

#include <span>
#include <string_view>

#include "testing/emulate/kernel.hpp"

namespace pagoda::emulate {

[[nodiscard]] std::span<const EmulatedKernel> all_kernels();
[[nodiscard]] const EmulatedKernel* find_kernel(std::string_view name);  // nullptr: none

}  // namespace pagoda::emulate
