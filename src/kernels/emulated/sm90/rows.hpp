// Registry rows of the Hopper attention kernels: kernels/sm90 on the emulator.
#pragma once

#include <span>

#include "core/kernel.hpp"

namespace pagoda::emulated {

[[nodiscard]] std::span<const core::Kernel> sm90_kernels();

}  // namespace pagoda::emulated
