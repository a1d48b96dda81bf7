// Runs the conformance table on a back end, at every ISA level of the machine.
#include "cli/check.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/engine_options.hpp"
#include "cli/progress.hpp"
#include "cli/terminal.hpp"
#include "conformance/runner.hpp"

namespace pagoda::cli {
namespace {

using conformance::Case;
using conformance::CaseReport;
using conformance::RunSummary;
using conformance::Target;
using conformance::Verdict;

struct CheckOptions {
  std::string backend = "cpu";
  std::string isa = "all";
  std::string filter;
  bool lists_only = false;
  bool is_json = false;
  bool is_verbose = false;
};

// What one target did with the table.
struct Tally {
  int32_t passed = 0, failed = 0, skipped = 0;
  double worst = 0;  // error as a share of the tolerance
  std::string worst_case;
};

std::vector<Target> choose_targets(const CheckOptions& options) {
  require_backend("--backend", options.backend);
  std::vector<Target> targets = conformance::targets_of(options.backend);
  if (options.isa == "all") return targets;
  std::vector<std::string> levels;
  for (const Target& target : targets) {
    if (!target.isa_level.empty()) levels.push_back(target.isa_level);
  }
  if (levels.empty()) {
    fail(fmt::format("--isa: back end '{}' has no ISA levels", options.backend));
  }
  std::erase_if(targets, [&](const Target& target) { return target.isa_level != options.isa; });
  if (targets.empty()) {
    fail(fmt::format("--isa: '{}' is not a level of this machine; it has: {}", options.isa,
                     fmt::join(levels, ", ")));
  }
  return targets;
}

const char* name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::kPassed: return "passed";
    case Verdict::kFailed: return "failed";
    case Verdict::kSkipped: return "skipped";
  }
  return "?";
}

void count(Tally& tally, const CaseReport& report) {
  const conformance::Outcome& outcome = report.outcome;
  if (outcome.verdict == Verdict::kSkipped) {
    ++tally.skipped;
    return;
  }
  ++(outcome.verdict == Verdict::kPassed ? tally.passed : tally.failed);
  const double share = outcome.tolerance > 0 ? outcome.max_relative_error / outcome.tolerance : 0;
  if (tally.worst_case.empty() || share > tally.worst) {
    tally.worst = share;
    tally.worst_case = report.test_case->name;
  }
}

void print_report(const CaseReport& report) {
  const Verdict verdict = report.outcome.verdict;
  const Style style = verdict == Verdict::kPassed   ? Style::kGreen
                      : verdict == Verdict::kFailed ? Style::kRed
                                                    : Style::kYellow;
  fmt::print("{}  {}  {}{}\n", paint(fmt::format("{:<7}", name_of(verdict)), style), report.target,
             report.test_case->name,
             report.outcome.message.empty() ? "" : ": " + report.outcome.message);
}

nlohmann::ordered_json to_json(const CaseReport& report) {
  return {{"case", report.test_case->name},
          {"target", report.target},
          {"verdict", name_of(report.outcome.verdict)},
          {"kernel", report.outcome.kernel},
          {"max_relative_error", report.outcome.max_relative_error},
          {"tolerance", report.outcome.tolerance},
          {"message", report.outcome.message},
          {"seconds", report.seconds}};
}

void print_tallies(const std::vector<Target>& targets, std::map<std::string, Tally>& tallies) {
  using Align = Table::Align;
  Table table({{"target"},
               {"passed", Align::kRight},
               {"failed", Align::kRight},
               {"skipped", Align::kRight},
               {"worst error / tolerance", Align::kRight},
               {"in case"}});
  for (const Target& target : targets) {
    const Tally& t = tallies[target.label];
    table.add({target.label, format_count(t.passed),
               t.failed == 0 ? "0" : paint(format_count(t.failed), Style::kRed),
               format_count(t.skipped), fmt::format("{:.2f}", t.worst), t.worst_case});
  }
  table.print();
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

void run_check(const CheckOptions& options) {
  const std::vector<const Case*> cases = conformance::select_cases(options.filter);
  if (cases.empty()) fail(fmt::format("--filter: no case matches '{}'", options.filter));
  if (options.lists_only) return list_cases(cases, options.is_json);

  const std::vector<Target> targets = choose_targets(options);
  const size_t total = cases.size() * targets.size();
  if (!options.is_json) {
    std::vector<std::string> labels;
    for (const Target& target : targets) labels.push_back(target.label);
    fmt::print("{} cases on {} ({} runs)\n", cases.size(), fmt::join(labels, ", "), total);
    std::fflush(stdout);
  }
  std::map<std::string, Tally> tallies;
  nlohmann::ordered_json reports = nlohmann::ordered_json::array();
  Progress progress("check", static_cast<int64_t>(total));
  const RunSummary summary = conformance::run_cases(
      cases, targets, [&](const CaseReport& report, int32_t done, int32_t /*total*/) {
        count(tallies[report.target], report);
        if (options.is_json) reports.push_back(to_json(report));
        const bool is_worth_a_line =
            options.is_verbose || report.outcome.verdict == Verdict::kFailed;
        if (!options.is_json && is_worth_a_line) {
          progress.clear();
          print_report(report);
        }
        progress.update(done, report.target);
        return true;
      });
  progress.finish();
  if (options.is_json) {
    fmt::print("{}\n", nlohmann::ordered_json{{"cases", cases.size()},
                                              {"passed", summary.passed},
                                              {"failed", summary.failed},
                                              {"skipped", summary.skipped},
                                              {"seconds", summary.seconds},
                                              {"reports", reports}}
                           .dump(2));
  } else {
    print_tallies(targets, tallies);
    fmt::print("{} passed, {} failed, {} skipped\n", summary.passed,
               summary.failed == 0 ? "0" : paint(fmt::format("{}", summary.failed), Style::kRed),
               summary.skipped);
  }
  finish_with(summary.failed == 0 ? 0 : kExitFailed);
}

}  // namespace

void add_check_command(CLI::App& app) {
  auto options = std::make_shared<CheckOptions>();
  CLI::App* command = app.add_subcommand(
      "check", "Run the conformance table: every case against the double-precision reference");
  command->add_option("--backend", options->backend, "Back end to check (default cpu)");
  command->add_option("--isa", options->isa,
                      "One ISA level, or 'all' (default): every level of this machine in turn");
  command->add_option("--filter", options->filter,
                      "Only cases whose name contains this or, with * or ?, matches it");
  command->add_flag("--list", options->lists_only, "Print the names of the cases and end");
  command->add_flag("--verbose", options->is_verbose, "Print a line for every case");
  command->add_flag("--json", options->is_json, "Print one JSON object");
  command->footer(
      "The last line is 'N passed, N failed, N skipped'; the exit code is 1 where a "
      "case failed.");
  command->callback([options] { run_check(*options); });
}

}  // namespace pagoda::cli
