// Masks that are not intervals, one query row at a time: adds biases to a run of scores and sets
// the scores of masked keys to -infinity.
#pragma once

#include <cstdint>

#include "core/problem.hpp"

namespace pagoda::mask {

inline constexpr int kMaxRun = 512;  // keys per call

struct RowPosition {
  int32_t sequence = 0;
  int32_t row = 0;  // query row within its sequence
  int32_t q_head = 0;
  int32_t q_position = 0;
};

// scores[i] belongs to key first_key + i, 0 <= i < n <= kMaxRun, in natural units.
void apply(const core::Problem& problem, const RowPosition& position, int32_t first_key, int32_t n,
           float* scores);

}  // namespace pagoda::mask
