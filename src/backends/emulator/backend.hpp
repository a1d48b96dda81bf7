// Back ends "emu:sm90" and "emu:sm100": the kernels of a chip, run by the emulator on memory of the host. A
// library of its own, which needs Boost: programs add it by engine::register_backend().
#pragma once

#include <cstdint>
#include <span>

#include "core/backend.hpp"
#include "emulator/machine/machine.hpp"

namespace pagoda::emulator {

// One for each chip that families of kernels are for.
[[nodiscard]] std::span<const core::Backend* const> backends();

// Throws where the emulator has reported something: a call whose kernel has a bug must fail, whatever its
// result.
void expect_clean(const Result& result);

}  // namespace pagoda::emulator
