// Runs of append_kv and merge_states, for the registry.
#pragma once

#include "kernels/emulated/kernel.hpp"

namespace pagoda::emulated {

Outcome run_append_kv(const emulator::Options& options);
Outcome run_merge_states(const emulator::Options& options);

}  // namespace pagoda::emulated
