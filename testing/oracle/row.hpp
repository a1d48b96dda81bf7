// One row of one head of attention: the result in double, and how far a kernel may be from it.
// Decision 0004 is the rule; this is its only implementation.
//
// A kernel rounds every probability and every output, and computes the rest in fp32. Per element d
//
//   rounding of O   round_d  = u_out |o_d|
//   rounding of P   random_d = sqrt(sum_j (u_p p_j v_jd)^2), where errors are independent,
//                   linear_d = sum_j u_p p_j |v_jd|, whatever they are
//   fp32            fp32_d   = sum_j p_j |v_jd| e_j, where e_j is the relative error of p_j
//
// and the limits are
//
//   element   |got - o_d| <= 1.3 (round_d + min(linear_d, 3 random_d)) + fp32_d
//   row       rms_d(got - o_d) <= 2.75 spread
//   LSE       |got - lse| <= the error of an exp + the fp32 error of the largest scores
//
// where spread is the root mean square that independent roundings leave. comparison.hpp adds the
// limits of a case.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "pagoda/dtype.hpp"

namespace pagoda::oracle {

// The types of P and of the output. P has that of the queries: where they are of 8 bits, so may a
// kernel's tensor core want P.
struct Precision {
  DType p, out;
};

// A key that the row sees.
struct VisibleKey {
  double score = 0;      // after scale, soft cap and biases; natural
  double magnitude = 0;  // of the terms that it is the sum of: what fp32 loses is relative to them
  const float* value = nullptr;  // [dim]
};

struct ExpectedRow {
  std::vector<double> out;  // [dim]
  double lse = 0, row_max = 0;

  // Limits.
  std::vector<double> element;  // [dim]
  double rms = 0;
  double lse_limit = 0, row_max_limit = 0;

  double spread = 0;      // the rms error of an honest kernel
  double gain_sigma = 0;  // the standard deviation of (got - out) . out / |out|^2
  double gain_floor = 0;  // what of it is the same in all rows
};

// `sink`: a natural logit, -infinity for none. A row without keys is zero, exactly.
[[nodiscard]] ExpectedRow expect_row(std::span<const VisibleKey> keys, int32_t dim,
                                     Precision precision, double v_scale = 1,
                                     double sink = -std::numeric_limits<double>::infinity());

}  // namespace pagoda::oracle
