// The registry rows of the CPU back end, best first.
#pragma once

#include <span>

#include "core/kernel.hpp"

namespace pagoda::cpu {

[[nodiscard]] std::span<const core::Kernel> kernels();

}  // namespace pagoda::cpu
