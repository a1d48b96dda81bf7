// Measures a planned call: times, and the error of sampled rows against the reference.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench/roofline.hpp"
#include "cli/problem_buffers.hpp"
#include "cli/problem_spec.hpp"
#include "pagoda/attention.hpp"
#include "testing/mirror/mirror.hpp"

namespace pagoda::cli {

[[nodiscard]] double median(std::vector<double> values);  // 0 for none

// Why the engine rejects a problem, in its words; empty where it does not. Touches no memory.
[[nodiscard]] std::string rejection_reason(const ProblemSpec& spec, const Options& options);

// The call over buffers that hold no data, as the back end would be given it: enough to plan.
[[nodiscard]] Attention as_seen_by(const std::string& backend, const ProblemBuffers& buffers);

// A planned problem with its data and workspace, where the back end reads them.
class PlannedProblem {
 public:
  // Ends the command with the engine's message where the call is rejected.
  PlannedProblem(const ProblemSpec& spec, const Options& options);

  [[nodiscard]] const Plan& plan() const { return plan_; }
  // The host's; of a device, its copy there as it was after the last run_once().
  [[nodiscard]] ProblemBuffers& buffers() { return buffers_; }
  [[nodiscard]] const ProblemSpec& spec() const { return spec_; }
  [[nodiscard]] core::MemorySpace& space() { return space_; }

  // Plans again, for example for another executor.
  void plan_with(const Options& options);
  // Fills the outputs with NaN, wherever the call writes them.
  void poison_outputs();
  // Runs once, and waits; returns its seconds by the host's clock. The outputs are in buffers()
  // then.
  double run_once();
  // Seconds of each of `iterations` runs: by the clock of the host or, of a device, by its own,
  // with a second level cache that holds nothing of the call.
  [[nodiscard]] std::vector<double> time_runs(int64_t iterations);
  // Seconds a run of `iterations` that follow each other, by the host's clock, waiting once.
  [[nodiscard]] double time_back_to_back(int64_t iterations);
  // Seconds of each of `iterations` calls of plan().
  [[nodiscard]] std::vector<double> time_plans(int64_t iterations);

  // Counted from the lengths, which a plan for a device does not know.
  [[nodiscard]] bench::Work work() const { return work_; }

 private:
  [[nodiscard]] const Attention& attention();
  void launch();

  ProblemSpec spec_;
  Options options_;
  core::MemorySpace& space_;
  ProblemBuffers buffers_;
  std::optional<mirror::Mirror> mirror_;  // of a device
  Plan plan_;
  bench::Buffer host_workspace_;  // in huge pages
  mirror::Block device_workspace_;
  bench::Work work_;
};

struct ErrorReport {
  double max_relative = 0;  // of O, relative to the largest value of its row and head
  double over_limit = 0;    // the worst error of O or LSE as a share of its limit
  int64_t rows = 0;         // compared, all heads of each
  std::string message;      // the first error above its limit
  [[nodiscard]] bool passes() const { return message.empty(); }
};

// Compares `rows` query rows (the first and the last of the batch, and random ones) with
// cpu::reference_row under the limits of testing/oracle. The outputs must hold a finished run.
[[nodiscard]] ErrorReport compare_with_reference(const ProblemSpec& spec,
                                                 const ProblemBuffers& buffers, int64_t rows);

}  // namespace pagoda::cli
