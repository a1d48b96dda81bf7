// What a case must give: the reference's rows, and the tolerance that the naive computation in the
// same precision earns.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "case.hpp"
#include "problem_data.hpp"

namespace pagoda::conformance {

// One row of one head.
struct ExpectedHead {
  int32_t b = 0, row = 0, head = 0;
  std::vector<double> out;
  double lse = 0, row_max = 0;
};

// How far a result may be from the reference.
//
//   out      |o - ref| <= relative * max|ref of the row and head| + absolute
//   lse      |l - ref| <= statistics + 4 eps |ref|                      (row_max likewise)
//
// `relative` is a factor times the worst ratio that the naive computation reaches anywhere in the
// case, and at least that factor times half a unit in the last place. The ratio is taken per row
// because a row of many keys averages to small outputs: an error there would drown in a bound from
// rows of few keys.
struct Tolerance {
  double relative = 0;
  double absolute = 0;
  double statistics = 0;
};

struct Expected {
  std::vector<ExpectedHead> heads;
  Tolerance tolerance;
};

[[nodiscard]] Expected compute_expected(const Case& c, const ProblemData& data);

struct Comparison {
  double max_relative_error = 0;  // of O, relative to the largest value of its row
  std::string message;            // the first mismatch; empty = agreement
};
[[nodiscard]] Comparison compare(const Case& c, const ProblemData& data, const Expected& expected);

}  // namespace pagoda::conformance
