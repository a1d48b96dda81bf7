// The CUDA back end, which every build has: in one without GPU code it says that it can't run.
#pragma once

#include "core/backend.hpp"

namespace pagoda::cuda {

[[nodiscard]] const core::Backend& backend();

}  // namespace pagoda::cuda
