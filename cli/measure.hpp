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

// The message with which the engine rejects a problem; empty = it accepts it. Touches no memory.
[[nodiscard]] std::string rejection_reason(const ProblemSpec& spec, const Options& options);

// The call over buffers without data, with the device of the back end: sufficient to plan.
[[nodiscard]] Attention as_seen_by(const std::string& backend, const ProblemBuffers& buffers);

// A planned problem with its data and workspace in the memory of its back end.
class PlannedProblem {
 public:
  // Ends the command with the engine's message if the engine rejects the call.
  PlannedProblem(const ProblemSpec& spec, const Options& options);

  [[nodiscard]] const Plan& plan() const { return plan_; }
  // Host buffers. On a GPU their outputs are those of the last run_once().
  [[nodiscard]] ProblemBuffers& buffers() { return buffers_; }
  [[nodiscard]] const ProblemSpec& spec() const { return spec_; }
  [[nodiscard]] core::MemorySpace& space() { return space_; }

  // Plans again, for example for another executor.
  void plan_with(const Options& options);
  // Fills the outputs with NaN in the memory that the call writes.
  void poison_outputs();
  // Runs once and synchronises; returns host seconds. buffers() then holds the outputs.
  double run_once();
  // Seconds of each of `iterations` runs: host time, or on a GPU event time after a flush of the L2
  // cache.
  [[nodiscard]] std::vector<double> time_runs(int64_t iterations);
  // Seconds per run of `iterations` back-to-back runs: host time with one synchronisation at the
  // end.
  [[nodiscard]] double time_back_to_back(int64_t iterations);
  // Seconds of each of `iterations` calls of plan().
  [[nodiscard]] std::vector<double> time_plans(int64_t iterations);

  // Counted from the lengths, which a plan for a GPU does not depend on.
  [[nodiscard]] bench::Work work() const { return work_; }

 private:
  [[nodiscard]] const Attention& attention();
  void launch();

  ProblemSpec spec_;
  Options options_;
  core::MemorySpace& space_;
  ProblemBuffers buffers_;
  std::optional<mirror::Mirror> mirror_;  // GPU only
  Plan plan_;
  bench::Buffer host_workspace_;  // in huge pages
  mirror::Block device_workspace_;
  bench::Work work_;
};

struct ErrorReport {
  double max_relative = 0;  // of O, relative to the largest value of its row and head
  double over_limit = 0;    // the worst error of O or LSE divided by its limit
  int64_t rows = 0;         // compared query rows, all heads of each
  std::string message;      // the first error above its limit
  [[nodiscard]] bool passes() const { return message.empty(); }
};

// Compares `rows` query rows (the first and the last of the batch, and random ones) with
// cpu::reference_row by the limits of testing/oracle. The run must be complete.
[[nodiscard]] ErrorReport compare_with_reference(const ProblemSpec& spec,
                                                 const ProblemBuffers& buffers, int64_t rows);

}  // namespace pagoda::cli
