// The same attention as a careful beginner would write it in the call's own precision: fp32 scores
// and sums, 16-bit probabilities and outputs where the call is 16-bit. Its error is the yardstick.
#pragma once

#include <cstdint>

#include "core/problem.hpp"

namespace pagoda::conformance {

// The types of P and of the output. P has that of the queries: where they are of 8 bits, so may a
// kernel's tensor core want P.
struct Precision {
  DType p, out;
};

// out [num_q_heads, head_dim_vo], lse, row_max [num_q_heads]. `problem` must be canonical (fp32 K
// and V).
void naive_row(const core::Problem& problem, Precision precision, int32_t b, int32_t row,
               float* out, float* lse, float* row_max);

}  // namespace pagoda::conformance
