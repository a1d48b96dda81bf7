// Runs the conformance table on a back end: on the CPU at every ISA level of the machine, on the
// emulator with several cases at a time, on a GPU with all data in its memory.
#include "cli/check.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "bench/pinned_pool.hpp"
#include "cli/emulate.hpp"
#include "cli/engine_options.hpp"
#include "cli/progress.hpp"
#include "cli/skip_reasons.hpp"
#include "cli/terminal.hpp"
#include "testing/conformance/random_cases.hpp"
#include "testing/conformance/runner.hpp"

namespace pagoda::cli {
namespace {

using conformance::Case;
using conformance::CaseReport;
using conformance::RunSummary;
using conformance::Target;
using conformance::Verdict;

struct CheckOptions {
  BackendFlags target;
  std::string isa = "all";
  std::string filter;
  int64_t every = 1;
  int64_t random = 0;  // cases to draw; 0 = the table
  int64_t seed = 1;
  int32_t jobs = 0;               // 0 = the back end's default
  double max_multiply_adds = -1;  // millions; below 0 = the back end's default
  bool lists_only = false;
  bool plans_only = false;
  bool is_json = false;
  bool is_verbose = false;
};

// The results of one target.
struct Tally {
  int32_t passed = 0, failed = 0, skipped = 0, served = 0;
  double worst = 0;  // error as a share of its limit
  std::string worst_case;
};

std::vector<Target> choose_targets(const CheckOptions& options) {
  std::vector<Target> targets = conformance::targets_of(options.target.backend);
  if (options.target.num_sms == 0) {  // otherwise --num-sms holds for all cases
    for (Target& target : targets) {
      target.with_num_sms = with_emulated_num_sms;
    }
  }
  if (!options.target.kernel.empty()) {
    for (Target& target : targets) {
      target.options.kernel = options.target.kernel;
      target.label += " " + options.target.kernel;
    }
  }
  if (options.max_multiply_adds >= 0) {
    for (Target& target : targets) {
      target.effort.max_multiply_adds = options.max_multiply_adds * 1e6;
    }
  }
  for (Target& target : targets) target.effort.plans_only = options.plans_only;
  if (options.isa == "all") return targets;
  std::vector<std::string> levels;
  for (const Target& target : targets) {
    if (!target.isa_level.empty()) levels.push_back(target.isa_level);
  }
  if (levels.empty()) {
    fail(fmt::format("--isa: back end '{}' has no ISA levels", options.target.backend));
  }
  require_isa_level("--isa", options.isa, levels);
  std::erase_if(targets, [&](const Target& target) { return target.isa_level != options.isa; });
  return targets;
}

// `drawn` owns random cases.
std::vector<const Case*> choose_cases(const CheckOptions& options, std::vector<Case>& drawn) {
  constexpr int64_t kMostDrawn = 1'000'000;
  require_range("--every", options.every, 1);
  require_range("--random", options.random, 0, kMostDrawn);
  if (options.random > 0) drawn = conformance::random_cases(options.seed, options.random);
  const std::vector<Case>& from = options.random > 0 ? drawn : conformance::all_cases();
  std::vector<const Case*> cases;
  int64_t index = 0;
  for (const Case* c : conformance::select_cases(options.filter, from)) {
    if (index++ % options.every == 0) cases.push_back(c);
  }
  if (cases.empty()) fail(fmt::format("--filter: no case matches '{}'", options.filter));
  return cases;
}

// An emulated launch is single-threaded, so several cases can run at a time. CPU kernels use all
// threads for one case, and GPU cases share the default stream.
int32_t choose_jobs(const CheckOptions& options) {
  constexpr int32_t kMost = 1024;
  require_range("--jobs", options.jobs, 0, kMost);
  const std::string& backend = options.target.backend;
  const bool is_emulated = backend.starts_with("emu:");
  if (options.jobs > 1 && !is_emulated) {
    fail(fmt::format("--jobs: back end '{}' runs one case at a time", backend));
  }
  if (options.jobs > 0) return options.jobs;
  return is_emulated ? static_cast<int32_t>(bench::allowed_cpus().size()) : 1;
}

const char* name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::kPassed: return "passed";
    case Verdict::kFailed: return "failed";
    case Verdict::kSkipped: return "skipped";
    case Verdict::kServed: return "served";
  }
  return "?";
}

void count(Tally& tally, const CaseReport& report) {
  const conformance::Outcome& outcome = report.outcome;
  if (outcome.verdict == Verdict::kSkipped) {
    ++tally.skipped;
    return;
  }
  if (outcome.verdict == Verdict::kServed) {
    ++tally.served;
    return;
  }
  ++(outcome.verdict == Verdict::kPassed ? tally.passed : tally.failed);
  const double share = outcome.shares.worst();
  if (tally.worst_case.empty() || share > tally.worst) {
    tally.worst = share;
    tally.worst_case = report.test_case->name;
  }
}

void print_report(const CaseReport& report) {
  const Verdict verdict = report.outcome.verdict;
  const Style style = verdict == Verdict::kFailed    ? Style::kRed
                      : verdict == Verdict::kSkipped ? Style::kYellow
                                                     : Style::kGreen;
  fmt::print("{}  {}  {}{}\n", paint(fmt::format("{:<7}", name_of(verdict)), style), report.target,
             report.test_case->name,
             verdict == Verdict::kServed      ? ": " + report.outcome.kernel
             : report.outcome.message.empty() ? ""
                                              : ": " + report.outcome.message);
  std::fflush(stdout);  // so that a reader of a pipe sees which case hangs
}

nlohmann::ordered_json to_json(const oracle::Shares& shares) {
  return {{"element", shares.element}, {"row_rms", shares.row_rms},   {"lse", shares.lse},
          {"row_max", shares.row_max}, {"case_rms", shares.case_rms}, {"gain", shares.gain}};
}

nlohmann::ordered_json to_json(const CaseReport& report) {
  return {{"case", report.test_case->name},
          {"target", report.target},
          {"verdict", name_of(report.outcome.verdict)},
          {"kernel", report.outcome.kernel},
          {"max_relative_error", report.outcome.max_relative_error},
          {"error_over_limit", to_json(report.outcome.shares)},
          {"message", report.outcome.message},
          {"seconds", report.seconds}};
}

void print_tallies(const std::vector<Target>& targets, std::map<std::string, Tally>& tallies) {
  using Align = Table::Align;
  Table table({{"target"},
               {"passed", Align::kRight},
               {"failed", Align::kRight},
               {"skipped", Align::kRight},
               {"worst error / limit", Align::kRight},
               {"in case"}});
  for (const Target& target : targets) {
    const Tally& t = tallies[target.label];
    table.add({target.label, format_count(t.passed),
               t.failed == 0 ? "0" : paint(format_count(t.failed), Style::kRed),
               format_count(t.skipped), fmt::format("{:.2f}", t.worst), t.worst_case});
  }
  table.print();
}

// Of a run that only plans.
void print_served(const std::vector<Target>& targets, std::map<std::string, Tally>& tallies) {
  Table table({{"target"}, {"served", Table::Align::kRight}, {"skipped", Table::Align::kRight}});
  for (const Target& target : targets) {
    const Tally& t = tallies[target.label];
    table.add({target.label, format_count(t.served), format_count(t.skipped)});
  }
  table.print();
}

void print_skips(const SkipReasons& skips) {
  const std::vector<SkipReason> reasons = skips.sorted();
  if (reasons.empty()) return;
  Table table({{"skipped", Table::Align::kRight}, {"reason"}, {"example"}});
  for (const SkipReason& reason : reasons) {
    table.add({format_count(reason.count), reason.text, reason.example});
  }
  fmt::print("\n");
  table.print();
  fmt::print("\n");
}

nlohmann::ordered_json to_json(const SkipReasons& skips) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const SkipReason& reason : skips.sorted()) {
    list.push_back({{"count", reason.count}, {"reason", reason.text}, {"example", reason.example}});
  }
  return list;
}

void list_cases(const std::vector<const Case*>& cases, bool is_json) {
  if (is_json) {
    nlohmann::ordered_json names = nlohmann::ordered_json::array();
    for (const Case* c : cases) names.push_back(c->name);
    fmt::print("{}\n", nlohmann::ordered_json{{"cases", names}}.dump(2));
    return;
  }
  for (const Case* c : cases) fmt::print("{}\n", c->name);
  fmt::print("{} cases\n", cases.size());
}

// The results of a run so far.
struct Findings {
  std::map<std::string, Tally> tallies;
  SkipReasons skips;
  nlohmann::ordered_json reports = nlohmann::ordered_json::array();
};

void print_heading(const std::vector<const Case*>& cases, const std::vector<Target>& targets,
                   int32_t jobs) {
  std::string labels;
  for (const Target& target : targets) labels += (labels.empty() ? "" : ", ") + target.label;
  fmt::print("{} cases on {} ({} runs{})\n", cases.size(), labels, cases.size() * targets.size(),
             jobs > 1 ? fmt::format(", {} at a time", jobs) : "");
  const conformance::Effort& effort = targets.front().effort;
  const double limit = effort.max_multiply_adds;
  if (effort.plans_only) {
    fmt::print("they are planned and not run\n");
  } else if (limit > 0) {
    fmt::print("cases of more than {:.0f} million multiply-adds are skipped\n", limit * 1e-6);
  }
  std::fflush(stdout);
}

void print_end(const RunSummary& summary, const std::vector<Target>& targets, Findings& findings) {
  const bool plans_only = targets.front().effort.plans_only;
  (plans_only ? print_served : print_tallies)(targets, findings.tallies);
  print_skips(findings.skips);
  if (plans_only) {
    fmt::print("{} served, {} failed, {} skipped\n", summary.served, summary.failed,
               summary.skipped);
    return;
  }
  fmt::print("{} passed, {} failed, {} skipped\n", summary.passed,
             summary.failed == 0 ? "0" : paint(fmt::format("{}", summary.failed), Style::kRed),
             summary.skipped);
}

void print_json(const RunSummary& summary, size_t cases, const Findings& findings) {
  fmt::print("{}\n", nlohmann::ordered_json{{"cases", cases},
                                            {"passed", summary.passed},
                                            {"failed", summary.failed},
                                            {"skipped", summary.skipped},
                                            {"served", summary.served},
                                            {"seconds", summary.seconds},
                                            {"skip_reasons", to_json(findings.skips)},
                                            {"reports", findings.reports}}
                         .dump(2));
}

void run_check(const CheckOptions& options) {
  if (!options.lists_only) apply_backend_flags(options.target);
  std::vector<Case> drawn;
  const std::vector<const Case*> cases = choose_cases(options, drawn);
  if (options.lists_only) return list_cases(cases, options.is_json);
  const std::vector<Target> targets = choose_targets(options);
  const int32_t jobs = choose_jobs(options);
  if (!options.is_json) print_heading(cases, targets, jobs);

  Findings findings;
  Progress progress("check", static_cast<int64_t>(cases.size() * targets.size()));
  const auto on_report = [&](const CaseReport& report, int32_t done, int32_t /*total*/) {
    count(findings.tallies[report.target], report);
    const Verdict verdict = report.outcome.verdict;
    if (verdict == Verdict::kSkipped) {
      findings.skips.add(report.outcome.message, report.test_case->name);
    }
    if (options.is_json) {
      findings.reports.push_back(to_json(report));
    } else if (options.is_verbose || verdict == Verdict::kFailed) {
      progress.clear();
      print_report(report);
    }
    progress.update(done, report.target);
    return true;
  };
  const RunSummary summary = conformance::run_cases(cases, targets, on_report, jobs);
  progress.finish();
  if (options.is_json) {
    print_json(summary, cases.size(), findings);
  } else {
    print_end(summary, targets, findings);
  }
  // If every case was skipped, as on a GPU without attention kernels, nothing was checked: that
  // fails.
  const bool has_run = summary.passed + summary.failed + summary.served > 0;
  if (!has_run) warn("no case could run");
  finish_with(summary.failed == 0 && has_run ? 0 : kExitFailed);
}

}  // namespace

void add_check_command(CLI::App& app) {
  auto options = std::make_shared<CheckOptions>();
  CLI::App* command = app.add_subcommand(
      "check", "Run the conformance table: every case against the double-precision reference");
  add_backend_options(*command, options->target);
  command->add_option("--isa", options->isa,
                      "One ISA level, or 'all' (default): every level of this machine in turn");
  command->add_option("--filter", options->filter,
                      "Only cases whose name contains this or, with * or ?, matches it");
  command->add_option("--every", options->every, "Only every Nth case of those (default 1)");
  CLI::Option* const random =
      command->add_option("--random", options->random,
                          "Draw so many cases at random instead of the table. One of them again: "
                          "--filter NAME as well");
  command->add_option("--seed", options->seed, "With --random: which cases (default 1)")
      ->needs(random);
  command->add_option("--jobs", options->jobs,
                      "Cases at a time, for emulated back ends (default there: the CPUs)");
  command->add_option("--max-multiply-adds", options->max_multiply_adds,
                      "Skip cases of more million multiply-adds; 0 = no limit (default: no limit, "
                      "except on emulated back ends)");
  command->add_flag("--list", options->lists_only, "Print the names of the cases and exit");
  command->add_flag("--plan", options->plans_only,
                    "Plan each case and run none: which kernel serves it (--verbose, --json), or "
                    "why none does");
  command->add_flag("--verbose", options->is_verbose, "Print a line for every case");
  command->add_flag("--json", options->is_json, "Print one JSON object");
  command->footer(
      "The last line is 'N passed, N failed, N skipped' (with --plan N served); the exit code is 1 "
      "if a case failed or none could run. Cases that --kernel does not support are skipped.");
  command->callback([options] { run_check(*options); });
}

}  // namespace pagoda::cli
