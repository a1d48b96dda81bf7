// Back end "emu:sm90": the kernels of an H100 or H200, run by the emulator on memory of the host. A
// library of its own, for it needs Boost: programs add it by engine::register_backend().
#pragma once

#include "core/backend.hpp"
#include "emulator/machine/machine.hpp"

namespace pagoda::emulator {

[[nodiscard]] const core::Backend& sm90_backend();

// Throws where the emulator found something: a call whose kernel has a bug must fail, whatever
// the result.
void expect_clean(const emulator::Result& result);

}  // namespace pagoda::emulator
