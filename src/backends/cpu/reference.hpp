// The oracle: naive attention in double precision. It shares no code with the fast kernels.
#pragma once

#include "core/problem.hpp"

namespace pagoda::cpu {

// Computes the whole problem on the calling thread.
void reference_attention(const core::Problem& problem);

// Computes only query row `row` of sequence `b`, all heads, for sampled checks of long calls.
// Writes out [num_q_heads, head_dim_vo], lse and row_max [num_q_heads] (each may be nullptr) in
// double.
void reference_row(const core::Problem& problem, int32_t b, int64_t row, double* out, double* lse,
                   double* row_max);

// The mask's result for one pair of a query row and a key < seqlen_kv.
struct MaskVerdict {
  bool keep = false;
  double bias = 0;  // meaningful where keep
};
[[nodiscard]] MaskVerdict reference_mask(const core::Problem& problem, int32_t b, int64_t row,
                                         int32_t q_head, int64_t key);

}  // namespace pagoda::cpu
