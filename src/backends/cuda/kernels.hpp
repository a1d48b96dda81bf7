// The registry rows of the CUDA back end, best first.
#pragma once

#include <span>

#include "core/kernel.hpp"

namespace pagoda::cuda {

// As the kernels declare them: the problem's device is current where `plan` and `run` are called.
[[nodiscard]] std::span<const core::Kernel> kernels();

}  // namespace pagoda::cuda
