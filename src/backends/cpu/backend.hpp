// The back ends of the host: tiled kernels, and the reference.
#pragma once

#include "core/backend.hpp"

namespace pagoda::cpu {

[[nodiscard]] const core::Backend& backend();
[[nodiscard]] const core::Backend& reference_backend();

}  // namespace pagoda::cpu
