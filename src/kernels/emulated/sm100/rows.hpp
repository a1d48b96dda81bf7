// Registry rows of the Blackwell attention kernels: kernels/sm100 on the emulator.
#pragma once

#include <span>

#include "core/kernel.hpp"

namespace pagoda::emulated {

[[nodiscard]] std::span<const core::Kernel> sm100_kernels();

}  // namespace pagoda::emulated
