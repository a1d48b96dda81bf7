// Measures a planned call: times, and the error of sampled rows against the reference.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "bench/roofline.hpp"
#include "cli/problem_buffers.hpp"
#include "cli/problem_spec.hpp"
#include "pagoda/attention.hpp"

namespace pagoda::cli {

[[nodiscard]] double median(std::vector<double> values);  // 0 for none

// A planned problem with its data and workspace.
class PlannedProblem {
 public:
  // Ends the command with the engine's message where the call is refused.
  PlannedProblem(const ProblemSpec& spec, const Options& options);

  [[nodiscard]] const Plan& plan() const { return plan_; }
  [[nodiscard]] ProblemBuffers& buffers() { return buffers_; }
  [[nodiscard]] const ProblemSpec& spec() const { return spec_; }

  // Plans again, for example for another executor.
  void plan_with(const Options& options);
  // Runs once; returns its seconds.
  double run_once();
  // Seconds of each of `iterations` runs.
  [[nodiscard]] std::vector<double> time_runs(int64_t iterations);
  // Seconds of each of `iterations` calls of plan().
  [[nodiscard]] std::vector<double> time_plans(int64_t iterations);

  [[nodiscard]] bench::Work work() const;

 private:
  ProblemSpec spec_;
  Options options_;
  ProblemBuffers buffers_;
  Plan plan_;
  bench::Buffer workspace_;
};

struct ErrorReport {
  double max_relative = 0;  // of O, relative to the largest value of its row and head
  double max_lse = 0;       // absolute, where the LSE was asked for
  double tolerance = 0;     // of both
  int64_t rows = 0;         // compared, all heads of each
  [[nodiscard]] bool passes() const {
    return max_relative <= tolerance && max_lse <= tolerance;  // NaN fails
  }
};

// Compares `rows` query rows (the first and the last of the batch, and random ones) with
// cpu::reference_row. The outputs must hold a finished run.
[[nodiscard]] ErrorReport compare_with_reference(const ProblemSpec& spec,
                                                 const ProblemBuffers& buffers, int64_t rows);

}  // namespace pagoda::cli
