// Lists the emulated kernels, runs them over modes and seeds, writes a trace of one run, or scores
// the mutants of a kernel.
#include "cli/emulate.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "bench/machine.hpp"
#include "cli/json_io.hpp"
#include "cli/progress.hpp"
#include "cli/terminal.hpp"
#include "emulator/trace/trace.hpp"
#include "testing/emulate/mutation_score.hpp"
#include "testing/emulate/registry.hpp"

namespace pagoda::cli {
namespace {

using emulate::EmulatedKernel;
using emulate::Mutant;
using emulate::MutationScore;
using emulate::Outcome;
using emulator::MmaOrder;
using emulator::Mode;
using emulator::Report;
using emulator::Statistics;
using Json = nlohmann::ordered_json;

struct EmulateOptions {
  std::vector<std::string> names;
  std::string mode;
  std::vector<Mode> modes;  // parsed from `mode`
  int64_t seed = 1;
  int64_t seeds = 5;
  std::string mma_order = "issue";
  std::string trace;
  bool mutates = false;
  bool is_sample = false;
  bool is_json = false;
};

// The runs of one kernel in one mode.
struct Runs {
  Mode mode = Mode::kRandom;
  uint64_t runs = 0, failed = 0;
  uint64_t mismatches = 0;
  std::string first_mismatch;
  uint64_t mismatch_seed = 0;
  std::vector<Report> reports;  // the first report of each source line
  Statistics statistics;        // summed over the runs
};

// --- what to run -------------------------------------------------------------------------------

std::vector<Mode> modes_of(const EmulateOptions& options) {
  if (options.mode == "all" || (options.mode.empty() && options.trace.empty())) {
    return {std::begin(emulator::kModes), std::end(emulator::kModes)};
  }
  if (options.mode.empty()) return {Mode::kRandom};
  const std::optional<Mode> mode = emulator::parse_mode(options.mode);
  if (!mode) {
    fail(
        fmt::format("--mode: '{}' is none of round-robin, random, eager, lazy, all", options.mode));
  }
  return {*mode};
}

MmaOrder mma_order_of(const EmulateOptions& options) {
  if (options.mma_order == "issue") return MmaOrder::kIssue;
  if (options.mma_order == "isa") return MmaOrder::kIsa;
  fail(fmt::format("--mma-order: '{}' is none of issue, isa", options.mma_order));
}

// A name, 'family/' for all kernels of a family, or 'all' for every kernel without a planted bug.
std::vector<const EmulatedKernel*> kernels_of(const std::vector<std::string>& names) {
  std::vector<const EmulatedKernel*> chosen;
  for (const std::string& name : names) {
    const size_t before = chosen.size();
    for (const EmulatedKernel& kernel : emulate::all_kernels()) {
      const bool is_named = name == kernel.name;
      const bool is_of_family =
          name.ends_with('/') && std::string_view(kernel.name).starts_with(name);
      if (is_named || is_of_family || (name == "all" && !kernel.planted)) chosen.push_back(&kernel);
    }
    if (chosen.size() == before) {
      fail(fmt::format("KERNEL: no emulated kernel '{}'; 'pagoda emulate' lists them", name));
    }
  }
  return chosen;
}

void check_options(const EmulateOptions& options) {
  require_range("--seed", options.seed, 0);
  require_range("--seeds", options.seeds, 1);
  if (options.names.empty()) {
    if (!options.trace.empty()) fail("--trace: needs a kernel");
    if (options.mutates) fail("--mutate: needs a kernel, or 'all'");
  }
  if (options.is_sample && !options.mutates) fail("--sample: only together with --mutate");
  if (options.mutates && mma_order_of(options) != MmaOrder::kIssue) {
    fail("--mma-order: not together with --mutate");
  }
  if (options.mutates && !options.trace.empty()) fail("--trace: not together with --mutate");
}

// --- the list ----------------------------------------------------------------------------------

std::string planted_text(const EmulatedKernel& kernel) {
  return kernel.planted ? std::string(name(*kernel.planted)) : "";
}

void list_kernels(bool is_json) {
  if (is_json) {
    Json list = Json::array();
    for (const EmulatedKernel& kernel : emulate::all_kernels()) {
      list.push_back({{"name", kernel.name},
                      {"arch", kernel.arch},
                      {"description", kernel.description},
                      {"planted", planted_text(kernel)}});
    }
    fmt::print("{}\n", Json{{"kernels", list}}.dump(2));
    return;
  }
  Table table({{"kernel"}, {"from"}, {"what it does"}, {"planted bug"}});
  for (const EmulatedKernel& kernel : emulate::all_kernels()) {
    table.add({kernel.name, kernel.arch, kernel.description,
               paint(planted_text(kernel), Style::kYellow)});
  }
  table.print();
}

// --- runs --------------------------------------------------------------------------------------

void add_up(Statistics& sum, const Statistics& one) {
  sum.steps += one.steps;
  sum.switches += one.switches;
  sum.accesses += one.accesses;
  sum.async_operations += one.async_operations;
  sum.multiply_adds += one.multiply_adds;
  sum.seconds += one.seconds;
}

void take_in(Runs& runs, const Outcome& outcome, uint64_t seed) {
  ++runs.runs;
  if (!outcome.is_right()) ++runs.failed;
  add_up(runs.statistics, outcome.result.statistics);
  for (const Report& report : outcome.result.reports) {
    const bool is_known =
        std::any_of(runs.reports.begin(), runs.reports.end(), [&](const Report& known) {
          return known.kind == report.kind && known.file == report.file &&
                 known.line == report.line && known.primitive == report.primitive;
        });
    if (!is_known) runs.reports.push_back(report);
  }
  // After a report the output is not compared.
  if (outcome.result.is_clean() && outcome.mismatches != 0) {
    if (runs.mismatches == 0) {
      runs.first_mismatch = outcome.first_mismatch;
      runs.mismatch_seed = seed;
    }
    runs.mismatches += outcome.mismatches;
  }
}

std::string per_second(uint64_t count, double seconds) {
  if (count == 0 || seconds <= 0) return "-";
  const double rate = static_cast<double>(count) / seconds;
  if (rate >= 1e9) return fmt::format("{:.2f} G", rate * 1e-9);
  return rate >= 1e6 ? fmt::format("{:.2f} M", rate * 1e-6) : fmt::format("{:.1f} k", rate * 1e-3);
}

void print_report(const Report& report) {
  const std::string text = to_string(report);
  const size_t colon = text.find(':');
  fmt::print("\n{}{}\n", paint(text.substr(0, colon), Style::kRed), text.substr(colon));
}

void print_findings(const EmulatedKernel& kernel, const EmulateOptions& options,
                    const std::vector<Runs>& all) {
  const auto print_again = [&](Mode mode, uint64_t seed) {
    fmt::print("  again: pagoda emulate {} --mode {} --seed {} --seeds 1{}\n", kernel.name,
               name(mode), seed, mma_order_of(options) == MmaOrder::kIsa ? " --mma-order isa" : "");
  };
  std::vector<std::string> shown;  // the same finding in several modes is shown once
  for (const Runs& runs : all) {
    for (const Report& report : runs.reports) {
      const std::string place =
          fmt::format("{} {}:{} {}", name(report.kind), report.file, report.line, report.primitive);
      if (std::find(shown.begin(), shown.end(), place) != shown.end()) continue;
      shown.push_back(place);
      print_report(report);
      print_again(report.mode, report.seed);
    }
    if (runs.mismatches != 0) {
      fmt::print("\n{}: {}, {} elements in all runs\n", paint("wrong result", Style::kRed),
                 runs.first_mismatch, runs.mismatches);
      print_again(runs.mode, runs.mismatch_seed);
    }
  }
}

void print_speeds(const std::vector<std::pair<const EmulatedKernel*, std::vector<Runs>>>& all) {
  using Align = Table::Align;
  Table table({{"kernel"},
               {"mode"},
               {"runs", Align::kRight},
               {"failed", Align::kRight},
               {"time", Align::kRight},
               {"switches/s", Align::kRight},
               {"accesses/s", Align::kRight},
               {"async ops/s", Align::kRight},
               {"multiply-adds/s", Align::kRight}});
  for (const auto& [kernel, modes] : all) {
    for (const Runs& runs : modes) {
      const Statistics& sum = runs.statistics;
      const std::string failed = format_count(static_cast<long long>(runs.failed));
      table.add({kernel->name, std::string(name(runs.mode)),
                 format_count(static_cast<long long>(runs.runs)),
                 runs.failed == 0 ? failed : paint(failed, Style::kRed),
                 format_seconds(sum.seconds), per_second(sum.switches, sum.seconds),
                 per_second(sum.accesses, sum.seconds),
                 per_second(sum.async_operations, sum.seconds),
                 per_second(sum.multiply_adds, sum.seconds)});
    }
  }
  table.print();
}

Json to_json(const Report& report) {
  return {{"kind", name(report.kind)},     {"message", report.message}, {"who", report.who},
          {"primitive", report.primitive}, {"file", report.file},       {"line", report.line},
          {"mode", name(report.mode)},     {"seed", report.seed}};
}

Json to_json(const Runs& runs) {
  Json reports = Json::array();
  for (const Report& report : runs.reports) reports.push_back(to_json(report));
  return {{"mode", name(runs.mode)},
          {"runs", runs.runs},
          {"failed", runs.failed},
          {"mismatches", runs.mismatches},
          {"first_mismatch", runs.first_mismatch},
          {"reports", reports},
          {"statistics",
           {{"seconds", runs.statistics.seconds},
            {"steps", runs.statistics.steps},
            {"switches", runs.statistics.switches},
            {"accesses", runs.statistics.accesses},
            {"async_operations", runs.statistics.async_operations},
            {"multiply_adds", runs.statistics.multiply_adds}}}};
}

std::vector<Runs> run_kernel(const EmulatedKernel& kernel, const EmulateOptions& options,
                             Progress& progress, int64_t& done) {
  std::vector<Runs> all;
  for (const Mode mode : options.modes) {
    Runs runs;
    runs.mode = mode;
    for (int64_t i = 0; i < options.seeds; ++i) {
      const auto seed = static_cast<uint64_t>(options.seed + i);
      take_in(runs, kernel.run({.mode = mode, .seed = seed, .mma_order = mma_order_of(options)}),
              seed);
      progress.update(++done, kernel.name);
    }
    all.push_back(std::move(runs));
  }
  return all;
}

void run_kernels(const std::vector<const EmulatedKernel*>& kernels, const EmulateOptions& options) {
  const int64_t total = static_cast<int64_t>(kernels.size() * options.modes.size()) * options.seeds;
  Progress progress("emulate", total, options.is_json);
  int64_t done = 0;
  uint64_t failed = 0;
  std::vector<std::pair<const EmulatedKernel*, std::vector<Runs>>> all;
  Json list = Json::array();
  for (const EmulatedKernel* kernel : kernels) {
    all.emplace_back(kernel, run_kernel(*kernel, options, progress, done));
    Json modes = Json::array();
    for (const Runs& runs : all.back().second) {
      failed += runs.failed;
      modes.push_back(to_json(runs));
    }
    list.push_back({{"name", kernel->name}, {"modes", modes}});
  }
  progress.finish();
  if (options.is_json) {
    fmt::print("{}\n", Json{{"date", utc_timestamp()},
                            {"machine", cli::to_json(bench::describe_machine())},
                            {"runs", done},
                            {"failed", failed},
                            {"kernels", list}}
                           .dump(2));
  } else {
    print_speeds(all);
    for (const auto& [kernel, modes] : all) print_findings(*kernel, options, modes);
    fmt::print("\n{} runs, {} failed\n", format_count(done),
               failed == 0 ? "0" : paint(fmt::format("{}", failed), Style::kRed));
  }
  finish_with(failed == 0 ? 0 : kExitFailed);
}

// --- a trace -----------------------------------------------------------------------------------

void write_trace(const std::vector<const EmulatedKernel*>& kernels, const EmulateOptions& options) {
  if (kernels.size() != 1) fail("--trace: takes the run of one kernel");
  if (options.modes.size() != 1) fail("--trace: takes one --mode, not all");
  const EmulatedKernel& kernel = *kernels.front();
  emulator::Tracer tracer;
  const Outcome outcome = kernel.run({.mode = options.modes.front(),
                                      .seed = static_cast<uint64_t>(options.seed),
                                      .mma_order = mma_order_of(options),
                                      .tracer = &tracer});
  std::ofstream file(options.trace);
  file << tracer.to_chrome_json();
  file.close();
  if (!file) fail(fmt::format("--trace: cannot write '{}'", options.trace));
  Runs runs;
  runs.mode = options.modes.front();
  take_in(runs, outcome, static_cast<uint64_t>(options.seed));
  if (options.is_json) {
    fmt::print("{}\n", Json{{"kernel", kernel.name},
                            {"trace", options.trace},
                            {"events", tracer.events().size()},
                            {"run", to_json(runs)}}
                           .dump(2));
  } else {
    fmt::print("{}: {} events of {}, mode {}, seed {}; open it in https://ui.perfetto.dev\n",
               options.trace, format_count(static_cast<long long>(tracer.events().size())),
               kernel.name, name(runs.mode), options.seed);
    print_findings(kernel, options, {runs});
  }
  finish_with(runs.failed == 0 ? 0 : kExitFailed);
}

// --- mutants -----------------------------------------------------------------------------------

void print_score(const EmulatedKernel& kernel, const MutationScore& score) {
  using Align = Table::Align;
  Table table({{"call"},
               {"at"},
               {"role"},
               {"mutant"},
               {"executions", Align::kRight},
               {"detected by"},
               {"in mode"},
               {"runs", Align::kRight}});
  for (const Mutant& mutant : score.mutants) {
    table.add({mutant.site.primitive, fmt::format("{}:{}", mutant.site.file, mutant.site.line),
               mutant.site.role, std::string(name(mutant.kind)),
               format_count(static_cast<long long>(mutant.site.executions)),
               mutant.is_killed() ? mutant.killed_by : paint("SURVIVED", Style::kRed),
               mutant.is_killed() ? std::string(name(mutant.mode)) : "",
               fmt::format("{}", mutant.runs)});
  }
  fmt::print("{}\n", paint(kernel.name, Style::kBold));
  table.print();
}

std::string percent(size_t killed, size_t all) {
  return fmt::format(
      "{:.1f} %",
      all == 0 ? 100.0 : 100.0 * static_cast<double>(killed) / static_cast<double>(all));
}

Json to_json(const EmulatedKernel& kernel, const MutationScore& score) {
  Json mutants = Json::array();
  for (const Mutant& mutant : score.mutants) {
    mutants.push_back({{"primitive", mutant.site.primitive},
                       {"file", mutant.site.file},
                       {"line", mutant.site.line},
                       {"role", mutant.site.role},
                       {"kind", name(mutant.kind)},
                       {"executions", mutant.site.executions},
                       {"is_killed", mutant.is_killed()},
                       {"killed_by", mutant.killed_by},
                       {"mode", name(mutant.mode)},
                       {"seed", mutant.seed},
                       {"runs", mutant.runs},
                       {"seconds", mutant.seconds}});
  }
  return {{"name", kernel.name},
          {"killed", score.killed()},
          {"mutants", score.mutants.size()},
          {"seconds", score.seconds},
          {"sites", mutants}};
}

void require_right(const EmulatedKernel& kernel) {
  for (const Mode mode : emulator::kModes) {
    const Outcome outcome = kernel.run({.mode = mode});
    if (!outcome.is_right()) {
      fail(fmt::format("--mutate: {} fails without a mutation; 'pagoda emulate {}' reports why",
                       kernel.name, kernel.name));
    }
  }
}

void mutate_kernels(const std::vector<const EmulatedKernel*>& kernels,
                    const emulate::MutationPlan& plan, bool is_json) {
  size_t killed = 0;
  size_t mutants = 0;
  Json list = Json::array();
  Table summary({{"kernel"},
                 {"mutants", Table::Align::kRight},
                 {"shown", Table::Align::kRight},
                 {"score", Table::Align::kRight},
                 {"time", Table::Align::kRight}});
  for (const EmulatedKernel* kernel : kernels) {
    require_right(*kernel);
    Progress progress(kernel->name, 0, is_json);
    const MutationScore score =
        emulate::score_mutants(*kernel, plan, [&](size_t done, size_t total) {
          progress.set_total(static_cast<int64_t>(total));
          progress.update(static_cast<int64_t>(done), "mutants");
        });
    progress.finish();
    killed += score.killed();
    mutants += score.mutants.size();
    if (is_json) {
      list.push_back(to_json(*kernel, score));
    } else {
      print_score(*kernel, score);
      fmt::print("\n");
    }
    summary.add({kernel->name, fmt::format("{}", score.mutants.size()),
                 fmt::format("{}", score.killed()), percent(score.killed(), score.mutants.size()),
                 format_seconds(score.seconds)});
  }
  if (is_json) {
    fmt::print("{}\n", Json{{"kernels", list}, {"killed", killed}, {"mutants", mutants}}.dump(2));
  } else {
    summary.print();
    fmt::print("mutation score: {} of {}, {}\n", killed, mutants, percent(killed, mutants));
  }
  finish_with(killed == mutants ? 0 : kExitFailed);
}

void run_emulate(EmulateOptions options) {
  check_options(options);
  options.modes = modes_of(options);
  if (options.names.empty()) return list_kernels(options.is_json);
  const std::vector<const EmulatedKernel*> kernels = kernels_of(options.names);
  if (options.mutates) {
    emulate::MutationPlan plan;
    plan.is_sample = options.is_sample;
    return mutate_kernels(kernels, plan, options.is_json);
  }
  if (!options.trace.empty()) return write_trace(kernels, options);
  run_kernels(kernels, options);
}

}  // namespace

void add_emulate_command(CLI::App& app) {
  auto options = std::make_shared<EmulateOptions>();
  CLI::App* command = app.add_subcommand(
      "emulate", "Run GPU kernels on the emulator, which reports races, deadlocks and misuse");
  command->add_option("KERNEL,--kernel", options->names,
                      "Kernels to run: names, 'family/', or 'all' (without the planted bugs); "
                      "without any, the list");
  command->add_option("--mode", options->mode,
                      "Schedule: round-robin, random, eager, lazy or all (default; random for "
                      "--trace)");
  command->add_option("--seed", options->seed, "First seed (default 1): data and schedule");
  command->add_option("--seeds", options->seeds, "Seeds in each mode (default 5)");
  command->add_option("--mma-order", options->mma_order,
                      "Which tcgen05.mma of one thread are ordered: issue (default: all, as "
                      "published kernels assume) or isa (only those that the PTX ISA lists)");
  command->add_option("--trace", options->trace,
                      "Write one run as Chrome trace events, for Perfetto, to this file");
  command->add_flag(
      "--mutate", options->mutates,
      "Run mutants: each synchronisation dropped or done wrong in turn; one of up to 20 runs "
      "must detect it");
  command->add_flag("--sample", options->is_sample,
                    "With --mutate: one mutant per call site, as the tests do");
  command->add_flag("--json", options->is_json, "Print one JSON object");
  command->footer(
      "The exit code is 1 if a run has a finding or a wrong result, or a mutant survives. "
      "docs/emulator.md explains the findings.");
  command->callback([options] { run_emulate(*options); });
}

}  // namespace pagoda::cli
