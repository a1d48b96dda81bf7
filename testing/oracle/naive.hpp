// Naive attention in the call's precision: fp32 scores and sums, 16-bit probabilities and outputs
// for a 16-bit call. The limits must accept it.
#pragma once

#include <cstdint>

#include "core/problem.hpp"
#include "testing/oracle/row.hpp"

namespace pagoda::oracle {

// out [num_q_heads, head_dim_vo], lse, row_max [num_q_heads]. `problem` must be canonical (fp32 K
// and V).
void naive_row(const core::Problem& problem, Precision precision, int32_t b, int32_t row,
               float* out, float* lse, float* row_max);

}  // namespace pagoda::oracle
