// The expected results of a case: the reference's rows with their limits, and the comparison
// (testing/oracle: decision 0004).
#pragma once

#include <vector>

#include "testing/conformance/case.hpp"
#include "testing/conformance/problem_data.hpp"
#include "testing/oracle/comparison.hpp"
#include "testing/oracle/row.hpp"

namespace pagoda::conformance {

// One row of one head.
struct ExpectedHead {
  oracle::RowLabel at;
  oracle::ExpectedRow row;
};

[[nodiscard]] std::vector<ExpectedHead> compute_expected(const Case& c, const ProblemData& data);

[[nodiscard]] oracle::Comparison compare(const Case& c, const ProblemData& data,
                                         const std::vector<ExpectedHead>& expected);

}  // namespace pagoda::conformance
