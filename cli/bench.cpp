// The bench command: grids, tables and the result file. bench_runner measures one case.
#include "cli/bench.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <memory>
#include <set>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "bench/machine.hpp"
#include "bench/pinned_pool.hpp"
#include "cli/bench_cases.hpp"
#include "cli/bench_runner.hpp"
#include "cli/bench_worker.hpp"
#include "cli/case_file.hpp"
#include "cli/device_bench.hpp"
#include "cli/device_cases.hpp"
#include "cli/engine_options.hpp"
#include "cli/json_io.hpp"
#include "cli/progress.hpp"
#include "cli/provenance.hpp"
#include "cli/terminal.hpp"
#include "pagoda/backend.hpp"
#include "testing/mirror/host_space.hpp"

namespace pagoda::cli {
namespace {

struct BenchOptions {
  std::string grid = "all";
  std::string filter;
  std::string cases;  // a file
  std::string isa;
  std::string out;
  BenchSettings settings;
  bool is_quick = false;
  bool lists_only = false;
  bool is_json = false;
  bool is_worker = false;
};

std::vector<int32_t> default_threads() {
  const auto cpus = static_cast<int32_t>(bench::allowed_cpus().size());
  std::set<int32_t> counts{1, std::min(2, cpus), cpus};
  return {counts.begin(), counts.end()};
}

bool is_on_device(const BenchOptions& options) {
  return !mirror::space_of(options.settings.backend).is_host();
}

std::vector<BenchCase> grid_cases(const BenchOptions& options, const bench::Machine& machine) {
  const bool is_device = is_on_device(options);
  const auto& names = is_device ? device_grid_names() : grid_names();
  const bool is_known = options.grid == "all" || (options.grid == "cpu" && !is_device) ||
                        std::find(names.begin(), names.end(), options.grid) != names.end();
  if (!is_known) {
    fail(
        fmt::format("GRID: '{}' is not one of {}, cpu, all", options.grid, fmt::join(names, ", ")));
  }
  if (is_device) return device_cases(options.grid, options.is_quick);
  return bench_cases(options.grid, {.l2_bytes = machine.cache_bytes(2),
                                    .largest_cache_bytes = machine.largest_cache_bytes(),
                                    .free_memory_bytes = machine.free_memory_bytes,
                                    .is_quick = options.is_quick});
}

std::vector<BenchCase> choose_cases(const BenchOptions& options, const bench::Machine& machine) {
  std::vector<BenchCase> cases =
      options.cases.empty() ? grid_cases(options, machine) : read_case_file(options.cases);
  std::erase_if(
      cases, [&](const BenchCase& c) { return c.name.find(options.filter) == std::string::npos; });
  if (cases.empty()) fail(fmt::format("--filter: no case's name contains '{}'", options.filter));
  return cases;
}

void check_settings(BenchOptions& options) {
  BenchSettings& settings = options.settings;
  require_available_backend("--backend", settings.backend);
  if (!options.isa.empty()) use_isa_level("--isa", options.isa);
  const auto cpus = static_cast<int32_t>(bench::allowed_cpus().size());
  if (settings.threads.empty()) settings.threads = default_threads();
  for (const int32_t threads : settings.threads) {
    require_range("--threads", threads, 1, cpus);
  }
  require_range("--repeats", settings.repeats, 0);
  if (!(settings.seconds_per_case > 0)) {
    fail(fmt::format("--seconds: {} is not above 0", settings.seconds_per_case));
  }
}

void list_cases(const std::vector<BenchCase>& cases, bool is_json) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const BenchCase& c : cases) {
    if (is_json) {
      list.push_back({{"name", c.name},
                      {"grid", c.grid},
                      {"measures", c.times_planning ? "plan" : "run"},
                      {"problem", to_json(c.spec)}});
    } else {
      fmt::print("{:<36} {}\n", c.name, c.spec.summary());
    }
  }
  if (is_json) fmt::print("{}\n", list.dump(2));
}

std::string share_text(const BenchRow& row) {
  if (row.bound.seconds <= 0) return "";
  const std::string text = fmt::format("{:.0f} %", 100 * row.share());
  if (row.share() >= 0.8) return paint(text, Style::kGreen);
  return row.share() < 0.5 ? paint(text, Style::kYellow) : text;
}

void print_results(const std::vector<BenchResult>& results) {
  using Align = Table::Align;
  Table table({{"case"},
               {"kernel"},
               {"threads", Align::kRight},
               {"median", Align::kRight},
               {"GFLOP/s", Align::kRight},
               {"GB/s", Align::kRight},
               {"of roofline", Align::kRight},
               {"bound by"},
               {"scaling", Align::kRight},
               {"workspace", Align::kRight},
               {"error"}});
  std::string grid;
  for (const BenchResult& result : results) {
    if (!grid.empty() && grid != result.grid) table.add_separator();
    grid = result.grid;
    const double one = result.rows.front().threads == 1 ? result.rows.front().time() : 0;
    for (const BenchRow& row : result.rows) {
      const bool is_first = &row == &result.rows.front();
      const double time = row.time();
      const bool is_plan = result.times_planning;
      table.add({is_first ? result.name : "", is_first ? result.kernel : "",
                 fmt::format("{}", row.threads), format_seconds(time),
                 is_plan ? "" : fmt::format("{:.1f}", result.work.flops / time * 1e-9),
                 is_plan ? "" : fmt::format("{:.2f}", result.work.bytes / time * 1e-9),
                 share_text(row), row.bound.limit,
                 is_plan || row.threads == 1 || one == 0 ? "" : fmt::format("{:.2f}x", one / time),
                 is_first ? format_bytes(static_cast<double>(result.workspace_bytes)) : "",
                 !is_first               ? ""
                 : result.error.passes() ? fmt::format("{:.0e}", result.error.max_relative)
                                         : paint("WRONG", Style::kRed)});
    }
  }
  table.print();
}

nlohmann::ordered_json report_json(const BenchOptions& options, const bench::Machine& machine,
                                   const bench::Ceilings& ceilings,
                                   const std::vector<BenchResult>& results) {
  nlohmann::ordered_json cases = nlohmann::ordered_json::array();
  for (const BenchResult& result : results) cases.push_back(to_json(result));
  return {{"tool", "pagoda bench"},
          {"version", PAGODA_VERSION},
          {"git_revision", git_revision()},
          {"date", utc_timestamp()},
          {"command", command_line()},
          {"backend", options.settings.backend},
          {"isa", cpu_isa_level()},
          {"executor", "one pinned thread a CPU"},
          {"machine", to_json(machine)},
          {"ceilings", to_json(ceilings)},
          {"cases", cases}};
}

nlohmann::ordered_json report_json(const BenchOptions& options, const bench::Machine& machine,
                                   core::MemorySpace& space, double copy,
                                   const std::vector<DeviceResult>& results) {
  nlohmann::ordered_json cases = nlohmann::ordered_json::array();
  for (const DeviceResult& result : results) cases.push_back(to_json(result, copy));
  return {{"tool", "pagoda bench"},
          {"version", PAGODA_VERSION},
          {"git_revision", git_revision()},
          {"date", utc_timestamp()},
          {"command", command_line()},
          {"backend", options.settings.backend},
          {"clock", "events, L2 flushed before each run"},
          {"device", to_json(space.facts())},
          {"gpu_state", gpu_state()},
          {"machine", to_json(machine)},
          {"copy_bytes_per_second", copy},
          {"cases", cases}};
}

void publish(const BenchOptions& options, const nlohmann::ordered_json& report) {
  if (!options.out.empty()) write_json_file("--out", options.out, report);
  if (options.is_json) fmt::print("{}\n", report.dump(2));
}

void run_on_device(const BenchOptions& options, const bench::Machine& machine,
                   const std::vector<BenchCase>& cases) {
  core::MemorySpace& space = mirror::space_of(options.settings.backend);
  const double copy = measure_copy(space);
  std::vector<DeviceResult> results;
  Progress progress("bench", static_cast<int64_t>(cases.size()));
  for (const BenchCase& bench_case : cases) {
    progress.update(static_cast<int64_t>(results.size()), bench_case.name);
    results.push_back(run_device_case(bench_case, options.settings));
  }
  progress.finish();
  publish(options, report_json(options, machine, space, copy, results));
  if (!options.is_json) {
    fmt::print("{}, {}; a copy moves {:.0f} GB/s; medians, L2 flushed\n\n", space.facts().name,
               space.facts().driver, copy * 1e-9);
    print_device_results(results, copy);
  }
  const bool all_pass =
      std::all_of(results.begin(), results.end(), [](const DeviceResult& r) { return r.passes(); });
  finish_with(all_pass ? 0 : kExitFailed);
}

void run_bench(BenchOptions& options) {
  check_settings(options);
  if (options.is_worker) return run_bench_worker(options.settings.backend);
  const bench::Machine machine = bench::describe_machine();
  const std::vector<BenchCase> cases = choose_cases(options, machine);
  if (options.lists_only) return list_cases(cases, options.is_json);
  if (is_on_device(options)) return run_on_device(options, machine, cases);

  const int32_t most =
      *std::max_element(options.settings.threads.begin(), options.settings.threads.end());
  const bench::Ceilings ceilings = bench::measure_ceilings(most);
  std::vector<BenchResult> results;
  Progress progress("bench", static_cast<int64_t>(cases.size()));
  for (const BenchCase& bench_case : cases) {
    progress.update(static_cast<int64_t>(results.size()), bench_case.name);
    results.push_back(run_bench_case(bench_case, options.settings, ceilings));
  }
  progress.finish();
  publish(options, report_json(options, machine, ceilings, results));
  if (!options.is_json) {
    fmt::print("{}, isa {}, medians of interleaved repeats, threads pinned\n\n", machine.cpu_model,
               cpu_isa_level());
    print_results(results);
  }
  const bool all_pass = std::all_of(results.begin(), results.end(),
                                    [](const BenchResult& r) { return r.error.passes(); });
  finish_with(all_pass ? 0 : kExitFailed);
}

}  // namespace

void add_bench_command(CLI::App& app) {
  auto options = std::make_shared<BenchOptions>();
  CLI::App* command = app.add_subcommand(
      "bench", "Grids of problems: medians, share of the measured roofline, what bounds each case");
  BenchSettings& settings = options->settings;
  command->add_option("GRID", options->grid,
                      "prefill, decode, mixed, plan, or all (default; 'cpu' means the same); on a "
                      "GPU prefill, decode, fp8, queries, chunk");
  command->add_option("--cases", options->cases,
                      R"(Instead of a grid: a JSON file of {"name", "problem"}, - = stdin)");
  command->add_option("--filter", options->filter, "Only cases whose name contains this");
  command->add_option("--threads", settings.threads, "Thread counts (default 1,2 and all CPUs)")
      ->delimiter(',');
  command->add_option("--repeats", settings.repeats,
                      "Repeats of each case and thread count (default: by --seconds, at least 5)");
  command->add_option("--seconds", settings.seconds_per_case,
                      "Seconds for each case and thread count (default 1.5)");
  command->add_option("--isa", options->isa, "Use at most this ISA level");
  command->add_option("--backend", settings.backend, "Back end (default cpu)");
  command->add_option("--kernel", settings.kernel,
                      "Use this kernel, or those that begin so: sm80.*");
  command->add_option("--out", options->out, "Write the report to this JSON file");
  command->add_flag("--quick", options->is_quick, "A few small cases");
  command->add_flag("--list", options->lists_only, "Print the cases and exit");
  command->add_flag("--json", options->is_json, "Print the report as one JSON object");
  command->add_flag("--worker", options->is_worker,
                    "Serve measurements over stdin and stdout (for bench/peers)");
  command->footer(
      "The roofline is the slowest of arithmetic, exponentials and memory at the ceilings that "
      "'pagoda info' measures.\nThe exit code is 1 if a result is wrong.");
  command->callback([options] { run_bench(*options); });
}

}  // namespace pagoda::cli
