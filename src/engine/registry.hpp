// The table of all kernels, one row each, in the order of preference.
#pragma once

#include <span>

#include "core/kernel.hpp"

namespace pagoda::engine {

// Every kernel of every back end; within a back end, best first.
[[nodiscard]] std::span<const core::Kernel> registry();

}  // namespace pagoda::engine
