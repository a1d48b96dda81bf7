// Runs of components of the attention kernels, for the registry.
#pragma once

#include "testing/emulate/kernel.hpp"

namespace pagoda::emulate {

Outcome run_tile_product(const emulator::Options& options);
Outcome run_product_chain(const emulator::Options& options);
Outcome run_shared_ring(const emulator::Options& options);
Outcome run_split_rings(const emulator::Options& options);
Outcome run_paged_tile(const emulator::Options& options);

}  // namespace pagoda::emulate
