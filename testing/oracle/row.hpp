// One row of one head of attention: the result in double, and the limits of a kernel's error. The
// only implementation of decision 0004.
//
// A kernel rounds every probability and every output, and computes the rest in fp32. Per element d
//
//   rounding of O   round_d  = u_out |o_d|
//   rounding of P   random_d = sqrt(sum_j (u_p p_j v_jd)^2), where errors are independent,
//                   linear_d = sum_j u_p p_j |v_jd|, in the worst case
//   fp32            fp32_d   = sum_j p_j |v_jd| e_j, where e_j is the relative error of p_j
//
// and the limits are
//
//   element   |got - o_d| <= 1.3 (round_d + min(linear_d, 3 random_d)) + fp32_d
//   row       rms_d(got - o_d) <= 2.75 spread
//   LSE       |got - lse| <= the error of an exp + the fp32 error of the largest scores; with e4m3
//             queries + 3 sqrt(sum_j (2^-13 p_j m_j)^2), m_j the magnitude of the terms of score j
//
// where spread is the root mean square of independent roundings. comparison.hpp adds the limits of
// a case.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "pagoda/dtype.hpp"

namespace pagoda::oracle {

// The types of P and of the output. P has the type of the queries: with 8-bit queries the tensor
// core may need an 8-bit P.
struct Precision {
  DType p, out;
};

// A key that the row sees.
struct VisibleKey {
  double score = 0;              // after scale, soft cap and biases; natural units
  double magnitude = 0;          // of the terms of the score, to which fp32 errors are relative
  const float* value = nullptr;  // [dim]
};

struct ExpectedRow {
  std::vector<double> out;  // [dim]
  double lse = 0, row_max = 0;

  // Limits.
  std::vector<double> element;  // [dim]
  double rms = 0;
  double lse_limit = 0, row_max_limit = 0;

  double spread = 0;      // the rms error of a correct kernel
  double gain_sigma = 0;  // the standard deviation of (got - out) . out / |out|^2
  // The error of that factor that other rows may have, too: the bias of rounding, numbers that
  // round to zero, O that is the same in several rows.
  double gain_floor = 0;
};

// `sink`: a logit in natural units, -infinity = none. A row without keys is exactly zero.
[[nodiscard]] ExpectedRow expect_row(std::span<const VisibleKey> keys, int32_t dim,
                                     Precision precision, double v_scale = 1,
                                     double sink = -std::numeric_limits<double>::infinity());

}  // namespace pagoda::oracle
