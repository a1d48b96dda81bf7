// The position of a role in a ring: stage index, and the parity of its pass over the ring (phase).
#pragma once

#include <cstdint>

#include "core/target.hpp"

namespace pagoda::pipeline {

template <int num_stages>
struct PipelineState {
  static_assert(num_stages >= 1, "a ring has at least one stage");
  uint32_t index = 0;
  uint32_t phase = 0;

  // On a fresh barrier the phase of parity 1 is complete. A producer that starts at parity 1
  // therefore passes its first wait for each stage: the ring is empty.
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
