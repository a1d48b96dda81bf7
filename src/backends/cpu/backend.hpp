// The host back ends: cpu (tiled kernels) and reference.
#pragma once

#include "core/backend.hpp"

namespace pagoda::cpu {

[[nodiscard]] const core::Backend& backend();
[[nodiscard]] const core::Backend& reference_backend();

}  // namespace pagoda::cpu
