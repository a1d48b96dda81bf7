// Registry rows of the Blackwell attention kernels: kernels/sm100 on a GPU.
#pragma once

#include <span>

#include "core/kernel.hpp"

namespace pagoda::cuda {

[[nodiscard]] std::span<const core::Kernel> sm100_kernels();

}  // namespace pagoda::cuda
