// Roofline: the shortest time that this machine's measured ceilings allow for a call.
#pragma once

#include <cstdint>
#include <string>

#include "bench/ceilings/ceilings.hpp"

namespace pagoda::bench {

// The least work of a call.
struct Work {
  double flops = 0;         // 2 * visible pairs * (dim_qk + dim_vo)
  double exponentials = 0;  // one per visible pair
  double bytes = 0;         // Q, O and the visible part of K and V, each once
  std::string dtype;        // the type whose products are computed: "fp32" or "bf16"
};

struct Bound {
  double seconds = 0;      // the largest of the three below; 0 = nothing was measured
  const char* limit = "";  // "compute", "exp", or the memory level: "L2", "L3", "DRAM"
  double compute_seconds = 0;
  double exp_seconds = 0;
  double memory_seconds = 0;
  std::string memory_level;  // the nearest that holds the working set
};

// With `threads` threads at or below an ISA level.
[[nodiscard]] Bound roofline(const Ceilings& ceilings, const Work& work, const std::string& isa,
                             int32_t threads);

}  // namespace pagoda::bench
