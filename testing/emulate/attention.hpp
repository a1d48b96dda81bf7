// Runs of the attention kernels of mha_sm90, mha_sm100 and mha_sm100_d512, for the registry.
#pragma once

#include "testing/emulate/kernel.hpp"

namespace pagoda::emulate {

Outcome run_prefill(const emulator::Options& options);
Outcome run_prefill_split(const emulator::Options& options);
Outcome run_decode(const emulator::Options& options);
Outcome run_decode_gathered(const emulator::Options& options);

Outcome run_mha_2q(const emulator::Options& options);
Outcome run_mha_2q_split(const emulator::Options& options);
Outcome run_mha_2q_gathered(const emulator::Options& options);
Outcome run_mha_2q_decode(const emulator::Options& options);
Outcome run_mha_2q_persistent(const emulator::Options& options);
Outcome run_mha_2q_pair(const emulator::Options& options);
// Not in the registry: with one tile a CTA no ring of work goes around, and mutants of it survive.
Outcome run_mha_2q_transient(const emulator::Options& options);
Outcome run_mha_2q_pair_transient(const emulator::Options& options);

Outcome run_mha_d512(const emulator::Options& options);
Outcome run_mha_d512_sections(const emulator::Options& options);
Outcome run_mha_d512_transient(const emulator::Options& options);  // not in the registry, as above

}  // namespace pagoda::emulate
