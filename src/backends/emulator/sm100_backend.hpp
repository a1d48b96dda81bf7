// Back end "emu:sm100": the kernels of a Blackwell GPU, run by the emulator on memory of the host. No
// Blackwell chip has run them yet.
#pragma once

#include "core/backend.hpp"

namespace pagoda::emulator {

[[nodiscard]] const core::Backend& sm100_backend();

}  // namespace pagoda::emulator
