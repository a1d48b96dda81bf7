// Registry rows of the Blackwell attention kernels for large heads: kernels/sm100_deep on a GPU.
#pragma once

#include <span>

#include "core/kernel.hpp"

namespace pagoda::cuda {

[[nodiscard]] std::span<const core::Kernel> sm100_deep_kernels();

}  // namespace pagoda::cuda
