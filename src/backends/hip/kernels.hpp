// The registry rows of the HIP back end, best first.
#pragma once

#include <span>

#include "core/kernel.hpp"

namespace pagoda::hip {

// As the families declare them: `plan` and `run` require that the problem's device is current.
[[nodiscard]] std::span<const core::Kernel> kernels();

}  // namespace pagoda::hip
