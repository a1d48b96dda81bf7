// The grids of `pagoda bench`: named problems, also measured on the peers (bench/peers).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/problem_spec.hpp"

namespace pagoda::cli {

struct BenchCase {
  std::string name;  // "prefill.fp32.d128.s2048.full"
  std::string grid;  // "prefill", "decode", "mixed", "plan"
  ProblemSpec spec;
  bool times_planning = false;  // plan() instead of run()
};

// Sizes that decide from which memory level decode reads its cache.
struct GridLimits {
  int64_t l2_bytes = 0;
  int64_t largest_cache_bytes = 0;
  int64_t free_memory_bytes = 0;
  bool is_quick = false;  // a few small cases
};

// The values of --grid, except "all" and "cpu", which select every grid.
[[nodiscard]] const std::vector<std::string>& grid_names();
[[nodiscard]] std::vector<BenchCase> bench_cases(const std::string& grid, const GridLimits& limits);

}  // namespace pagoda::cli
