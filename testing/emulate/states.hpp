// Runs of append_kv and merge_states, for the registry.
#pragma once

#include "testing/emulate/kernel.hpp"

namespace pagoda::emulate {

Outcome run_append_kv(const emulator::Options& options);
Outcome run_merge_states(const emulator::Options& options);

}  // namespace pagoda::emulate
