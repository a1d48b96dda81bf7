// Registry rows of the Blackwell attention kernels for large heads: kernels/sm100_deep on the emulator.
#pragma once

#include <span>

#include "core/kernel.hpp"

namespace pagoda::emulated {

[[nodiscard]] std::span<const core::Kernel> sm100_deep_kernels();

}  // namespace pagoda::emulated
