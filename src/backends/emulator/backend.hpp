// Back ends "emu:sm90" and "emu:sm100": the emulator runs the kernels of a chip on host memory.
// They are in a library of their own, because it needs Boost; register_emulator() adds them.
#pragma once

#include <cstdint>
#include <span>

#include "core/backend.hpp"
#include "emulator/machine/machine.hpp"

namespace pagoda::emulator {

// One back end per chip that a kernel family supports.
[[nodiscard]] std::span<const core::Backend* const> backends();

// Throws if the emulator reported anything: a call whose kernel has a bug must fail even if its
// result is right.
void expect_clean(const Result& result);

}  // namespace pagoda::emulator
