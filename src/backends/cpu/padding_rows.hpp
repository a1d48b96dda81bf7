// The rows of the outputs past the last sequence of ragged queries, on the host.
#pragma once

#include "core/problem.hpp"

namespace pagoda::cpu {

// O = 0, LSE = row_max = -infinity.
void zero_padding_rows(const core::Problem& problem);

}  // namespace pagoda::cpu
