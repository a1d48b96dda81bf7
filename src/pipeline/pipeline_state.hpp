// Where a role stands in a ring of stages: which stage, and the parity of the pass over the ring.
#pragma once

#include <cstdint>

#include "core/target.hpp"

namespace pagoda::pipeline {

template <int num_stages>
struct PipelineState {
  static_assert(num_stages >= 1, "a ring has at least one stage");
  uint32_t index = 0;
  uint32_t phase = 0;

  // A fresh barrier counts as if a phase of parity 1 had ended, so a producer that starts at parity
  // 1 passes its first wait for each stage: the ring is empty.
  static PAGODA_HOST_DEVICE PipelineState producer() { return {0, 1}; }
  static PAGODA_HOST_DEVICE PipelineState consumer() { return {0, 0}; }

  PAGODA_HOST_DEVICE void step() {
    if (++index == num_stages) {
      index = 0;
      phase ^= 1U;
    }
  }
};

}  // namespace pagoda::pipeline
