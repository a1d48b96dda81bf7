// Cost: how much work a call is, counted from lengths and masks in constant time per sequence.
#pragma once

#include "core/problem.hpp"

namespace pagoda::engine {

struct Cost {
  double flops = 0;     // 2 * visible (query, key) pairs * (dim_qk + dim_vo), over all query heads
  double kv_bytes = 0;  // K and V of every key that some query sees, read once per sequence
};

// Exact for every AND of causal, window, padding and chunked masks (of nested chunk sizes). Bits,
// functors, biases and OR count as if they kept every pair: an upper bound. With lengths in GPU
// memory every sequence counts as long as the bounds allow, and its last query is at its last key.
[[nodiscard]] Cost cost(const core::Problem& problem);

}  // namespace pagoda::engine
