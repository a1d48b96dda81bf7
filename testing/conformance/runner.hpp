// Runs the conformance table: every selected case on every target. The reference is computed once
// per case.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pagoda/attention.hpp"
#include "testing/conformance/call_site.hpp"
#include "testing/conformance/case.hpp"
#include "testing/conformance/expected.hpp"
#include "testing/conformance/problem_data.hpp"

namespace pagoda::conformance {

// kServed: a kernel serves the case, which was planned and not run (Effort::plans_only).
enum class Verdict : uint8_t { kPassed, kFailed, kSkipped, kServed };

struct Outcome {
  Verdict verdict = Verdict::kFailed;
  double max_relative_error = 0;  // of O, relative to the largest value of its row and head
  oracle::Shares shares;          // errors divided by their limits
  std::string kernel;             // that served the call
  std::string message;            // why it failed or was skipped
};

// How much work a target does.
struct Effort {
  int32_t repeats = 16;                         // of Demand::kRepeats
  std::vector<int32_t> worker_counts{1, 2, 5};  // of Demand::kBatchInvariant
  double max_multiply_adds = 0;  // cases with more in all their runs are skipped; 0 = no limit
  int64_t max_bytes = 0;         // the same for the bytes that the tensors span
  bool plans_only = false;       // nothing runs; those limits do not hold
};

// The multiply-adds of a kernel with 64-row tiles, without skipped tiles, over all runs of the
// case.
[[nodiscard]] double multiply_adds(const Case& c, const Effort& effort);

// The defaults of a back end: one worker count if it has no executor; limits for the emulator.
[[nodiscard]] Effort effort_for(const std::string& backend);

// Where to run: options and, for the CPU back end, the highest instruction-set level to use.
struct Target {
  std::string label;  // "cpu:avx2"
  Options options;
  std::string isa_level;  // empty = leave as it is
  Effort effort;
  // Runs `body` with plans for a GPU of that many multiprocessors. Empty = not supported.
  std::function<void(int32_t num_sms, const std::function<void()>& body)> with_num_sms;
};

// All targets of a back end; the CPU has one per ISA level of this machine, lowest first.
[[nodiscard]] std::vector<Target> targets_of(const std::string& backend);

// One case, its data and its expected results.
class CaseRunner {
 public:
  // The case must outlive the runner. Without expected results it can only plan
  // (Effort::plans_only).
  explicit CaseRunner(const Case& c, bool has_expected = true) : case_(c), data_(c, has_expected) {
    if (has_expected) expected_ = compute_expected(c, data_);
  }

  // Poisons the outputs, runs, compares, and checks the case's requirements. Never throws.
  [[nodiscard]] Outcome run(const Options& options, const Effort& effort = {});
  // Compares the current outputs.
  [[nodiscard]] Outcome judge() const;

  [[nodiscard]] ProblemData& data() { return data_; }

 private:
  [[nodiscard]] Outcome run_at(CallSite& site, const Options& options, const Effort& effort);
  [[nodiscard]] std::string find_unrepeatable_bits(CallSite& site, const Options& options,
                                                   const Effort& effort);
  [[nodiscard]] std::string find_batch_dependence(const Options& options, const Effort& effort);

  const Case& case_;
  ProblemData data_;
  std::vector<ExpectedHead> expected_;
};

struct CaseReport {
  const Case* test_case = nullptr;
  std::string target;
  Outcome outcome;
  double seconds = 0;
};

struct RunSummary {
  int32_t passed = 0;
  int32_t failed = 0;
  int32_t skipped = 0;
  int32_t served = 0;
  double seconds = 0;
  std::vector<CaseReport> not_passed;
};

// Called after each case and target, never twice at a time; `done` of `total`. Returns false to end
// the run early.
using Progress = std::function<bool(const CaseReport& report, int32_t done, int32_t total)>;

// Runs `jobs` cases at a time, for back ends that use one thread per call. A target with an ISA
// level needs jobs = 1, because the level is process-wide.
[[nodiscard]] RunSummary run_cases(std::span<const Case* const> cases,
                                   std::span<const Target> targets, const Progress& progress = {},
                                   int32_t jobs = 1);

}  // namespace pagoda::conformance
