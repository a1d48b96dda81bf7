// Runs of the Hopper attention kernel in kernels/sm90, for the registry.
#pragma once

#include "kernels/emulated/kernel.hpp"

namespace pagoda::emulated {

Outcome run_prefill(const emulator::Options& options);
Outcome run_prefill_split(const emulator::Options& options);
Outcome run_decode(const emulator::Options& options);

}  // namespace pagoda::emulated
