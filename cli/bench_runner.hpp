// Measures one BenchCase at several thread counts, interleaved, and places it on the roofline.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "bench/ceilings/ceilings.hpp"
#include "bench/roofline.hpp"
#include "cli/bench_cases.hpp"
#include "cli/measure.hpp"

namespace pagoda::cli {

struct BenchSettings {
  std::string backend = "cpu";
  std::string kernel;             // empty = choose
  std::vector<int32_t> threads;   // each measured, pinned
  int64_t repeats = 0;            // 0 = until seconds_per_case, at least kMinRepeats
  double seconds_per_case = 1.5;  // for each thread count
  int64_t rows_checked = 2;
};

struct BenchRow {
  int32_t threads = 1;
  std::vector<double> seconds;
  bench::Bound bound;

  [[nodiscard]] double time() const { return median(seconds); }
  // The share of the roofline; 0 for planning, which has none.
  [[nodiscard]] double share() const { return time() > 0 ? bound.seconds / time() : 0; }
};

struct BenchResult {
  std::string name, grid, kernel;
  ProblemSpec spec;
  bool times_planning = false;
  bench::Work work;
  int64_t workspace_bytes = 0;
  int64_t split_rows = 0;
  ErrorReport error;
  std::vector<BenchRow> rows;  // one row per thread count
};

// Ends the command if the engine rejects the case.
[[nodiscard]] BenchResult run_bench_case(const BenchCase& bench_case, const BenchSettings& settings,
                                         const bench::Ceilings& ceilings);

[[nodiscard]] nlohmann::ordered_json to_json(const BenchResult& result);

}  // namespace pagoda::cli
