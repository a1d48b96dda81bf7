// All rows of a case that a call writes.
#include "testing/conformance/expected.hpp"

#include <cstddef>
#include <cstdint>
#include <utility>

#include "testing/oracle/problem_row.hpp"

namespace pagoda::conformance {

std::vector<ExpectedHead> compute_expected(const Case& c, const ProblemData& data) {
  const core::Problem& p = data.canonical();
  std::vector<ExpectedHead> expected;
  for (int32_t b = 0; b < p.batch; ++b) {
    for (int32_t row = 0; row < data.output_rows(b); ++row) {
      int32_t head = 0;
      for (oracle::ExpectedRow& e : oracle::expect_rows(p, {c.q_dtype, c.out_dtype()}, b, row)) {
        expected.push_back({{b, row, head++}, std::move(e)});
      }
    }
  }
  return expected;
}

oracle::Comparison compare(const Case& c, const ProblemData& data,
                           const std::vector<ExpectedHead>& expected) {
  oracle::Comparison comparison;
  std::vector<float> out(static_cast<size_t>(c.dim_vo));
  for (const ExpectedHead& e : expected) {
    const auto row = static_cast<int32_t>(e.at.row);
    for (int32_t d = 0; d < c.dim_vo; ++d) {
      out[static_cast<size_t>(d)] = data.out(e.at.sequence, row, e.at.head, d);
    }
    if (c.wants_statistics) {
      const float lse = data.lse(e.at.sequence, row, e.at.head);
      const float row_max = data.row_max(e.at.sequence, row, e.at.head);
      comparison.add(e.row, e.at, out, &lse, c.wants_row_max ? &row_max : nullptr);
    } else {
      comparison.add(e.row, e.at, out);
    }
  }
  comparison.finish();
  return comparison;
}

}  // namespace pagoda::conformance
