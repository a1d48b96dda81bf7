// The table of all kernels, one row each, in the order of preference.
#pragma once

#include <span>

#include "core/kernel.hpp"

namespace pagoda::engine {

// Best first.
[[nodiscard]] std::span<const core::Kernel> registry();

}  // namespace pagoda::engine
