// Registry rows of the Hopper attention kernels: kernels/sm90 on a GPU.
#pragma once

#include <span>

#include "core/kernel.hpp"

namespace pagoda::cuda {

[[nodiscard]] std::span<const core::Kernel> sm90_kernels();

}  // namespace pagoda::cuda
