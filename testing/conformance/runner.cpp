// Runs cases and checks their further requirements: repeated bits, batch invariance.
#include "testing/conformance/runner.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <new>
#include <thread>

#include "pagoda/backend.hpp"

namespace pagoda::conformance {
namespace {

// An emulated case may take a few seconds: one core of a Xeon of 2.1 GHz does 30 to 100 million in
// one. The emulator keeps several bytes of state for every byte of memory.
constexpr double kEmulatedMultiplyAdds = 150e6;
constexpr int64_t kEmulatedBytes = int64_t{256} << 20;

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

// nullptr if this machine does not have the address space of the case.
std::unique_ptr<CaseRunner> make_runner(const Case& c, bool has_expected) {
  try {
    return std::make_unique<CaseRunner>(c, has_expected);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

Outcome run_on(const Case& c, CaseRunner* runner, const Target& target) {
  if (runner == nullptr) {
    return from_status(Status::unsupported("", "not enough memory or address space for the data"));
  }
  if (!target.isa_level.empty()) {
    if (const Status status = set_cpu_isa_level(target.isa_level); !status) {
      return from_status(status);
    }
  }
  if (c.num_sms == 0 || !target.with_num_sms) return runner->run(target.options, target.effort);
  Outcome outcome;
  target.with_num_sms(c.num_sms, [&] { outcome = runner->run(target.options, target.effort); });
  return outcome;
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

bool is_emulated(const std::string& backend) { return backend.starts_with("emu:"); }

// Why a case is skipped although the back end might serve it; empty = it runs.
std::string left_out(const Case& c, const ProblemData& data, const Effort& effort) {
  if (effort.max_bytes > 0 && data.input_bytes() > effort.max_bytes) {
    return "left out: its tensors span " + std::to_string(data.input_bytes() >> 20) +
           " MiB of memory; the limit here is " + std::to_string(effort.max_bytes >> 20);
  }
  const double count = multiply_adds(c, effort);
  if (effort.max_multiply_adds <= 0 || count <= effort.max_multiply_adds) return {};
  const auto millions = [](double x) { return std::to_string(static_cast<int64_t>(x * 1e-6)); };
  return "left out: " + millions(count) +
         " million multiply-adds in its tiles; the limit here is " +
         millions(effort.max_multiply_adds);
}

}  // namespace

double multiply_adds(const Case& c, const Effort& effort) {
  constexpr int64_t kRows = 64;
  double sum = 0;
  for (const Sequence& s : c.lengths.sequences) {
    const int64_t rows = int64_t{s.q} * (c.q_heads / c.kv_heads);
    const int64_t padded = (rows + kRows - 1) / kRows * kRows;
    sum += static_cast<double>(padded) * c.kv_heads * s.kv * (c.dim_qk + c.dim_vo);
  }
  if (c.demand == Demand::kRepeats) sum *= effort.repeats;
  if (c.demand == Demand::kBatchInvariant) {
    sum *= 5 * static_cast<double>(effort.worker_counts.size());  // once alone, in four batches
  }
  return sum;
}

Effort effort_for(const std::string& backend) {
  Effort effort;
  if (backend != "cpu" && backend != "reference") effort.worker_counts = {1};
  if (is_emulated(backend)) {
    effort.repeats = 3;
    effort.max_multiply_adds = kEmulatedMultiplyAdds;
    effort.max_bytes = kEmulatedBytes;
  }
  return effort;
}

std::vector<Target> targets_of(const std::string& backend) {
  const Effort effort = effort_for(backend);
  if (backend != "cpu") return {{backend, Options{.backend = backend}, "", effort, {}}};
  std::vector<Target> targets;
  for (const std::string& level : cpu_isa_levels()) {
    targets.push_back({"cpu:" + level, Options{.backend = backend}, level, effort, {}});
  }
  return targets;
}

Outcome CaseRunner::judge() const {
  const oracle::Comparison comparison = compare(case_, data_, expected_);
  Outcome outcome;
  outcome.verdict = Verdict::kPassed;
  outcome.max_relative_error = comparison.max_relative_error();
  outcome.shares = comparison.shares();
  outcome.message = data_.damage();
  if (outcome.message.empty()) outcome.message = comparison.message();
  if (outcome.message.empty()) outcome.message = data_.unzeroed_row();
  if (!outcome.message.empty()) outcome.verdict = Verdict::kFailed;
  return outcome;
}

Outcome CaseRunner::run(const Options& options, const Effort& effort) {
  Options chosen = options;
  if (case_.demand == Demand::kBatchInvariant) chosen.is_batch_invariant = true;
  if (case_.schedule != Schedule::kAutomatic) chosen.schedule = case_.schedule;
  if (case_.num_kv_splits != 0) chosen.num_kv_splits = case_.num_kv_splits;
  try {
    CallSite site(case_, data_, chosen.backend);
    return run_at(site, chosen, effort);
  } catch (const std::bad_alloc&) {
    return from_status(
        Status::unsupported("", "not enough memory on the device: the case's tensors span " +
                                    std::to_string(data_.input_bytes() >> 20) + " MiB"));
  } catch (const std::exception& e) {  // asynchronous device errors included
    return from_status(Status(StatusCode::kInternal, "", e.what()));
  }
}

Outcome CaseRunner::run_at(CallSite& site, const Options& options, const Effort& effort) {
  const Result<Plan> planned = plan(site.attention(), options);
  if (!planned) return from_status(planned.status());
  if (effort.plans_only) return {.verdict = Verdict::kServed, .kernel = planned->kernel()};
  if (const std::string why = left_out(case_, data_, effort); !why.empty()) {
    return from_status(Status::unsupported("", why));
  }
  site.poison_outputs();
  if (const Status status = site.run_planned(*planned); !status) return from_status(status);
  Outcome outcome = judge();
  outcome.kernel = planned->kernel();
  if (outcome.verdict != Verdict::kPassed) return outcome;
  outcome.message = site.damage();
  if (outcome.message.empty() && case_.demand == Demand::kRepeats) {
    outcome.message = find_unrepeatable_bits(site, options, effort);
  }
  if (outcome.message.empty() && case_.demand == Demand::kBatchInvariant) {
    outcome.message = find_batch_dependence(options, effort);
  }
  if (!outcome.message.empty()) outcome.verdict = Verdict::kFailed;
  return outcome;
}

std::string CaseRunner::find_unrepeatable_bits(CallSite& site, const Options& options,
                                               const Effort& effort) {
  const auto all_bits = [&] {
    std::vector<std::vector<uint32_t>> bits;
    bits.reserve(static_cast<size_t>(data_.canonical().batch));
    for (int32_t b = 0; b < data_.canonical().batch; ++b) bits.push_back(data_.result_bits(b));
    return bits;
  };
  const auto first = all_bits();
  // plan() and run() in one call must give the bits of the two apart, too.
  for (int32_t repeat = 2; repeat <= effort.repeats; ++repeat) {
    site.poison_outputs();
    if (const Status status = pagoda::run(site.attention(), options); !status) {
      return status.message();
    }
    site.fetch();
    if (all_bits() != first) return "run " + std::to_string(repeat) + " gave other bits";
  }
  return {};
}

// Runs the same sequences in other batches, on other pages and with other numbers of workers.
std::string CaseRunner::find_batch_dependence(const Options& options, const Effort& effort) {
  const std::vector<Sequence>& all = case_.lengths.sequences;
  std::vector<std::vector<uint32_t>> want;
  want.reserve(static_cast<size_t>(data_.canonical().batch));
  for (int32_t b = 0; b < data_.canonical().batch; ++b) want.push_back(data_.result_bits(b));

  const auto differs = [&](std::vector<Sequence> sequences, int32_t workers) -> std::string {
    Case variant = case_;
    variant.lengths.sequences = std::move(sequences);
    variant.name += "/variant" + std::to_string(variant.lengths.sequences.size());
    ProblemData data(variant);
    CallSite site(variant, data, options.backend);
    BackwardExecutor executor(workers);
    Options chosen = options;
    chosen.executor = &executor;
    site.poison_outputs();
    if (const Status status = pagoda::run(site.attention(), chosen); !status) {
      return status.message();
    }
    site.fetch();
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
  batches.reserve(all.size() + 3);
  for (const Sequence& s : all) batches.push_back({s});
  batches.emplace_back(all.rbegin(), all.rend());
  std::vector<Sequence> between_strangers{{.q = 3, .kv = 700, .id = 1000}};
  between_strangers.insert(between_strangers.end(), all.begin(), all.end());
  between_strangers.push_back({.q = 1, .kv = 40, .id = 1001});
  batches.push_back(between_strangers);
  batches.push_back(all);
  for (const auto& batch : batches) {
    for (const int32_t workers : effort.worker_counts) {
      std::string message = differs(batch, workers);
      if (!message.empty()) return message;
    }
  }
  return {};
}

namespace {

// Distributes cases to threads and collects their results.
class Run {
 public:
  Run(std::span<const Case* const> cases, std::span<const Target> targets, const Progress& progress)
      : cases_(cases),
        targets_(targets),
        progress_(progress),
        plans_only_(std::all_of(targets.begin(), targets.end(),
                                [](const Target& t) { return t.effort.plans_only; })) {}

  // Runs cases until none is left, or on_report returns false.
  void work() {
    for (size_t i = next_++; i < cases_.size() && goes_on_; i = next_++) {
      const std::unique_ptr<CaseRunner> runner = make_runner(*cases_[i], !plans_only_);
      for (size_t t = 0; t < targets_.size() && goes_on_; ++t) {
        CaseReport report;
        report.test_case = cases_[i];
        report.target = targets_[t].label;
        const auto start = std::chrono::steady_clock::now();
        report.outcome = run_on(*cases_[i], runner.get(), targets_[t]);
        report.seconds = seconds_since(start);
        record(i, report);
      }
    }
  }

  // In the order of the table, not of completion.
  [[nodiscard]] RunSummary summary() {
    std::stable_sort(not_passed_.begin(), not_passed_.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (auto& [i, report] : not_passed_) summary_.not_passed.push_back(std::move(report));
    return std::move(summary_);
  }

 private:
  void record(size_t i, const CaseReport& report) {
    const std::lock_guard lock(mutex_);
    switch (report.outcome.verdict) {
      case Verdict::kPassed: ++summary_.passed; break;
      case Verdict::kFailed: ++summary_.failed; break;
      case Verdict::kSkipped: ++summary_.skipped; break;
      case Verdict::kServed: ++summary_.served; break;
    }
    const bool is_good =
        report.outcome.verdict == Verdict::kPassed || report.outcome.verdict == Verdict::kServed;
    if (!is_good) not_passed_.emplace_back(i, report);
    const auto total = static_cast<int32_t>(cases_.size() * targets_.size());
    ++done_;
    if (progress_ && goes_on_) goes_on_ = progress_(report, done_, total);
  }

  std::span<const Case* const> cases_;
  std::span<const Target> targets_;
  const Progress& progress_;
  bool plans_only_;
  std::atomic<size_t> next_ = 0;
  std::atomic<bool> goes_on_ = true;
  std::mutex mutex_;
  int32_t done_ = 0;
  RunSummary summary_;
  std::vector<std::pair<size_t, CaseReport>> not_passed_;
};

}  // namespace

RunSummary run_cases(std::span<const Case* const> cases, std::span<const Target> targets,
                     const Progress& progress, int32_t jobs) {
  const auto start = std::chrono::steady_clock::now();
  const std::string level_before = cpu_isa_level();
  const bool has_levels = std::any_of(targets.begin(), targets.end(),
                                      [](const Target& t) { return !t.isa_level.empty(); });
  Run run(cases, targets, progress);
  std::vector<std::thread> others;
  for (int32_t i = 1; i < jobs && !has_levels; ++i) others.emplace_back([&] { run.work(); });
  run.work();
  for (std::thread& thread : others) thread.join();
  static_cast<void>(set_cpu_isa_level(level_before));  // it was valid when it was read
  RunSummary summary = run.summary();
  summary.seconds = seconds_since(start);
  return summary;
}

}  // namespace pagoda::conformance
