// The expected rows of a core::Problem.
#pragma once

#include <cstdint>
#include <vector>

#include "core/problem.hpp"
#include "testing/oracle/row.hpp"

namespace pagoda::oracle {

// The result of cpu::reference_row() for row `row` of sequence `b`, with limits; one per query
// head. Padding rows are zero.
[[nodiscard]] std::vector<ExpectedRow> expect_rows(const core::Problem& problem,
                                                   Precision precision, int32_t b, int64_t row);

}  // namespace pagoda::oracle
