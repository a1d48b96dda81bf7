// The oracle: naive attention in double precision.
#pragma once

#include "core/problem.hpp"

namespace pagoda::cpu {

// Computes the whole problem on the calling thread. Slow, and meant to be read.
void reference_attention(const core::Problem& problem);

// Only query row `row` of sequence `b`, all heads: what sampled checks of long calls use. Writes
// out [num_q_heads, head_dim_vo], lse and row_max [num_q_heads] (each may be nullptr) in double.
void reference_row(const core::Problem& problem, int32_t b, int64_t row, double* out, double* lse,
                   double* row_max);

}  // namespace pagoda::cpu
