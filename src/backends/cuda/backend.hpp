// The CUDA back end. Every build has it; without GPU code its unavailable_reason says so.
#pragma once

#include "core/backend.hpp"

namespace pagoda::cuda {

[[nodiscard]] const core::Backend& backend();

}  // namespace pagoda::cuda
