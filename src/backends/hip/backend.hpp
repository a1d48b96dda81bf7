// The HIP back end: AMD GPUs. Every build has it; without AMD code its unavailable_reason says so.
#pragma once

#include "core/backend.hpp"

namespace pagoda::hip {

[[nodiscard]] const core::Backend& backend();

}  // namespace pagoda::hip
