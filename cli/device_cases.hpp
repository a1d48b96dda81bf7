// The grids of `pagoda bench` for a GPU: the same shapes as the peers' published numbers.
#pragma once

#include <string>
#include <vector>

#include "cli/bench_cases.hpp"

namespace pagoda::cli {

// "prefill", "decode", "fp8", "queries", "chunk".
[[nodiscard]] const std::vector<std::string>& device_grid_names();
// The cases of one grid, or of all.
[[nodiscard]] std::vector<BenchCase> device_cases(const std::string& grid, bool is_quick);

}  // namespace pagoda::cli
