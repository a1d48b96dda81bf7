// Runs of the demonstration kernels in testing/demo, for the registry.
#pragma once

#include "testing/emulate/kernel.hpp"

namespace pagoda::emulate {

Outcome run_relay(const emulator::Options& options);
Outcome run_copy_ring(const emulator::Options& options);
Outcome run_last_block_sum(const emulator::Options& options);
Outcome run_planted_race(const emulator::Options& options);
Outcome run_planted_deadlock(const emulator::Options& options);
Outcome run_planted_uninitialised(const emulator::Options& options);
Outcome run_planted_bounds(const emulator::Options& options);
Outcome run_planted_protocol(const emulator::Options& options);

}  // namespace pagoda::emulate
