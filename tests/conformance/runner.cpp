// Runs cases and checks what they demand besides agreement: repeated bits, batch invariance.
#include "runner.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <new>

#include "pagoda/backend.hpp"

namespace pagoda::conformance {
namespace {

// Claims any number of workers and runs them one after the other, last first: a schedule that the
// executor's contract allows and a kernel might not expect.
class BackwardExecutor final : public Executor {
 public:
  explicit BackwardExecutor(int32_t workers) : workers_(workers) {}
  [[nodiscard]] int32_t workers() const override { return workers_; }
  void parallel(int32_t n, void (*body)(void*, int32_t), void* context) override {
    for (int32_t i = n - 1; i >= 0; --i) body(context, i);
  }

 private:
  int32_t workers_;
};

Outcome from_status(const Status& status) {
  Outcome outcome;
  outcome.verdict =
      status.code() == StatusCode::kUnsupported ? Verdict::kSkipped : Verdict::kFailed;
  outcome.message = status.message();
  return outcome;
}

// nullptr where this machine does not give the case its address space.
std::unique_ptr<CaseRunner> make_runner(const Case& c) {
  try {
    return std::make_unique<CaseRunner>(c);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

Outcome run_on(CaseRunner* runner, const Target& target) {
  if (runner == nullptr) {
    return from_status(Status::unsupported("", "not enough memory or address space for the data"));
  }
  if (!target.isa_level.empty()) {
    if (const Status status = set_cpu_isa_level(target.isa_level); !status) {
      return from_status(status);
    }
  }
  return runner->run(target.options);
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

std::vector<Target> targets_of(const std::string& backend) {
  if (backend != "cpu") return {{backend, Options{.backend = backend}, ""}};
  std::vector<Target> targets;
  for (const std::string& level : cpu_isa_levels()) {
    targets.push_back({"cpu:" + level, Options{.backend = backend}, level});
  }
  return targets;
}

Outcome CaseRunner::judge() const {
  const Comparison comparison = compare(case_, data_, expected_);
  Outcome outcome;
  outcome.verdict = Verdict::kPassed;
  outcome.max_relative_error = comparison.max_relative_error;
  outcome.tolerance = expected_.tolerance.relative;
  outcome.message = data_.damage();
  if (outcome.message.empty()) outcome.message = comparison.message;
  if (!outcome.message.empty()) outcome.verdict = Verdict::kFailed;
  return outcome;
}

Outcome CaseRunner::run(const Options& options) {
  Options chosen = options;
  if (case_.demand == Demand::kBatchInvariant) chosen.is_batch_invariant = true;
  data_.poison_outputs();
  const Result<Plan> planned = plan(data_.attention(), chosen);
  if (!planned) return from_status(planned.status());
  // A workspace of exactly the size that was promised, full of NaN but for what must be zero.
  const Memory workspace(planned->workspace_bytes());
  workspace.fill_with_nan(DType::kF8E4M3);
  const int64_t zeroed = planned->zeroed_workspace_bytes();
  std::fill_n(workspace.data(), zeroed, std::byte{0});
  const Status status = pagoda::run(*planned, data_.attention(),
                                    {workspace.data(), static_cast<size_t>(workspace.bytes())});
  if (!status) return from_status(status);
  Outcome outcome = judge();
  outcome.kernel = planned->kernel();
  if (std::any_of(workspace.data(), workspace.data() + zeroed,
                  [](std::byte b) { return b != std::byte{0}; })) {
    outcome.message = "the run left no zeros at the start of the workspace";
    outcome.verdict = Verdict::kFailed;
  }
  if (outcome.verdict != Verdict::kPassed) return outcome;
  if (case_.demand == Demand::kRepeats) outcome.message = find_unrepeatable_bits(chosen);
  if (case_.demand == Demand::kBatchInvariant) outcome.message = find_batch_dependence(chosen);
  if (!outcome.message.empty()) outcome.verdict = Verdict::kFailed;
  return outcome;
}

std::string CaseRunner::find_unrepeatable_bits(const Options& options) {
  const auto all_bits = [&] {
    std::vector<std::vector<uint32_t>> bits;
    for (int32_t b = 0; b < data_.canonical().batch; ++b) bits.push_back(data_.result_bits(b));
    return bits;
  };
  const auto first = all_bits();
  // plan() and run() in one call must give the bits of the two apart, too.
  for (int32_t repeat = 2; repeat <= 16; ++repeat) {
    data_.poison_outputs();
    if (const Status status = pagoda::run(data_.attention(), options); !status) {
      return status.message();
    }
    if (all_bits() != first) return "run " + std::to_string(repeat) + " gave other bits";
  }
  return {};
}

// Puts the same sequences into other batches, onto other pages and other numbers of workers.
std::string CaseRunner::find_batch_dependence(const Options& options) {
  const std::vector<Sequence>& all = case_.lengths.sequences;
  std::vector<std::vector<uint32_t>> want;
  for (int32_t b = 0; b < data_.canonical().batch; ++b) want.push_back(data_.result_bits(b));

  const auto differs = [&](std::vector<Sequence> sequences, int32_t workers) -> std::string {
    Case variant = case_;
    variant.lengths.sequences = std::move(sequences);
    variant.name += "/variant" + std::to_string(variant.lengths.sequences.size());
    ProblemData data(variant);
    BackwardExecutor executor(workers);
    Options chosen = options;
    chosen.executor = &executor;
    if (const Status status = pagoda::run(data.attention(), chosen); !status) {
      return status.message();
    }
    const std::vector<Sequence>& in = variant.lengths.sequences;
    for (size_t i = 0; i < in.size(); ++i) {
      for (size_t b = 0; b < all.size(); ++b) {
        if (in[i].id != all[b].id) continue;
        if (data.result_bits(static_cast<int32_t>(i)) == want[b]) continue;
        return "sequence " + std::to_string(b) + " gave other bits in a batch of " +
               std::to_string(in.size()) + " with " + std::to_string(workers) + " workers";
      }
    }
    return {};
  };

  std::vector<std::vector<Sequence>> batches;
  for (const Sequence& s : all) batches.push_back({s});
  batches.emplace_back(all.rbegin(), all.rend());
  std::vector<Sequence> between_strangers{{.q = 3, .kv = 700, .id = 1000}};
  between_strangers.insert(between_strangers.end(), all.begin(), all.end());
  between_strangers.push_back({.q = 1, .kv = 40, .id = 1001});
  batches.push_back(between_strangers);
  batches.push_back(all);
  for (const auto& batch : batches) {
    for (const int32_t workers : {1, 2, 5}) {
      std::string message = differs(batch, workers);
      if (!message.empty()) return message;
    }
  }
  return {};
}

RunSummary run_cases(std::span<const Case* const> cases, std::span<const Target> targets,
                     const Progress& progress) {
  RunSummary summary;
  const auto start = std::chrono::steady_clock::now();
  const std::string level_before = cpu_isa_level();
  const auto total = static_cast<int32_t>(cases.size() * targets.size());
  int32_t done = 0;
  bool goes_on = true;
  for (size_t i = 0; i < cases.size() && goes_on; ++i) {
    std::unique_ptr<CaseRunner> runner = make_runner(*cases[i]);
    for (size_t t = 0; t < targets.size() && goes_on; ++t) {
      CaseReport report;
      report.test_case = cases[i];
      report.target = targets[t].label;
      const auto case_start = std::chrono::steady_clock::now();
      report.outcome = run_on(runner.get(), targets[t]);
      report.seconds = seconds_since(case_start);
      switch (report.outcome.verdict) {
        case Verdict::kPassed: ++summary.passed; break;
        case Verdict::kFailed: ++summary.failed; break;
        case Verdict::kSkipped: ++summary.skipped; break;
      }
      if (report.outcome.verdict != Verdict::kPassed) summary.not_passed.push_back(report);
      if (progress) goes_on = progress(report, ++done, total);
    }
  }
  static_cast<void>(set_cpu_isa_level(level_before));  // it was valid when it was read
  summary.seconds = seconds_since(start);
  return summary;
}

}  // namespace pagoda::conformance
