// `pagoda run`: time, rates, checksum and error of one problem.
#include "cli/run.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <memory>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/engine_options.hpp"
#include "cli/measure.hpp"
#include "cli/terminal.hpp"
#include "pagoda/backend.hpp"

namespace pagoda::cli {
namespace {

struct RunOptions {
  RawProblem problem;
  EngineFlags engine;
  int64_t iterations = 0;  // 0 = about kAutoSeconds of runs
  int64_t rows = 8;
  bool is_json = false;
};

constexpr double kAutoSeconds = 1.0;
constexpr int64_t kMaxIterations = 1000000;

int64_t choose_iterations(int64_t wanted, double first_seconds) {
  if (wanted > 0) return wanted;
  return std::clamp<int64_t>(static_cast<int64_t>(kAutoSeconds / std::max(first_seconds, 1e-7)), 3,
                             1000);
}

struct RunResult {
  std::vector<double> seconds;
  ErrorReport error;
  uint64_t checksum = 0;
};

nlohmann::ordered_json result_json(PlannedProblem& problem, const RunResult& result,
                                   int32_t threads) {
  const bench::Work work = problem.work();
  const double time = median(result.seconds);
  return {{"problem", to_json(problem.spec())},
          {"kernel", problem.plan().kernel()},
          {"isa", cpu_isa_level()},
          {"threads", threads},
          {"device", problem.space().facts().name},
          {"iterations", result.seconds.size()},
          {"median_seconds", time},
          {"min_seconds", *std::min_element(result.seconds.begin(), result.seconds.end())},
          {"flops", work.flops},
          {"bytes", work.bytes},
          {"gflops_per_second", work.flops / time * 1e-9},
          {"gigabytes_per_second", work.bytes / time * 1e-9},
          {"workspace_bytes", problem.plan().workspace_bytes()},
          {"worker_scratch_bytes", problem.plan().worker_scratch_bytes()},
          {"work_items", problem.plan().num_work_items()},
          {"split_rows", problem.plan().num_split_rows()},
          {"checksum", fmt::format("{:016x}", result.checksum)},
          {"rows_checked", result.error.rows},
          {"max_relative_error", result.error.max_relative},
          {"error_over_limit", result.error.over_limit},
          {"passed", result.error.passes()}};
}

// Where the problem ran, and how it was timed.
std::string place_of(core::MemorySpace& space, int32_t threads) {
  if (!space.is_host()) return space.facts().name + ", timed with events, caches flushed";
  return fmt::format("isa {}, {} thread{}", cpu_isa_level(), threads, threads == 1 ? "" : "s");
}

std::string rate_of(double flops_per_second) {
  if (flops_per_second < 10e12) return fmt::format("{:.1f} GFLOP/s", flops_per_second * 1e-9);
  return fmt::format("{:.1f} TFLOP/s", flops_per_second * 1e-12);
}

void print_result(PlannedProblem& problem, const RunResult& result, int32_t threads) {
  const bench::Work work = problem.work();
  const double time = median(result.seconds);
  const double best = *std::min_element(result.seconds.begin(), result.seconds.end());
  const Plan& plan = problem.plan();
  fmt::print("{}\n\n", problem.spec().summary());
  fmt::print("  kernel     {} ({})\n", plan.kernel(), place_of(problem.space(), threads));
  fmt::print("  plan       {} work items, {} split rows\n", plan.num_work_items(),
             plan.num_split_rows());
  fmt::print("  workspace  {}, and {} a worker\n",
             format_bytes(static_cast<double>(plan.workspace_bytes())),
             format_bytes(static_cast<double>(plan.worker_scratch_bytes())));
  fmt::print("  time       {} median, {} best of {}\n", format_seconds(time), format_seconds(best),
             result.seconds.size());
  fmt::print("  rate       {}, {:.2f} GB/s\n", rate_of(work.flops / time),
             work.bytes / time * 1e-9);
  fmt::print("  checksum   {:016x}\n", result.checksum);
  const bool passes = result.error.passes();
  fmt::print("  error      {:.2e} in {} sampled rows, {:.2f} of the limit: {}\n",
             result.error.max_relative, result.error.rows, result.error.over_limit,
             paint(passes ? "ok" : "WRONG", passes ? Style::kGreen : Style::kRed));
  if (!passes) fmt::print("             {}\n", result.error.message);
}

void check_flags(const RunOptions& options) {
  require_range("--iterations", options.iterations, 0, kMaxIterations);
  require_range("--check-rows", options.rows, 0);
}

void run_problem(const RunOptions& options) {
  check_flags(options);
  const ProblemSpec spec = parse_problem(options.problem);
  const EngineSetup engine(options.engine);
  PlannedProblem problem(spec, engine.options());
  RunResult result;
  const double first = problem.run_once();  // warm-up; touches every page
  result.seconds = problem.time_runs(choose_iterations(options.iterations, first));
  problem.poison_outputs();  // so that a row that this run does not write fails the comparison
  problem.run_once();
  result.checksum = problem.buffers().checksum();
  result.error = compare_with_reference(spec, problem.buffers(), options.rows);
  if (options.is_json) {
    fmt::print("{}\n", result_json(problem, result, engine.threads()).dump(2));
  } else {
    print_result(problem, result, engine.threads());
  }
  finish_with(result.error.passes() ? 0 : kExitFailed);
}

}  // namespace

void add_run_command(CLI::App& app) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* command = app.add_subcommand(
      "run", "Run one problem on random data: time, rates, checksum, error against the reference");
  command->add_flag("--json", options->is_json, "Print one JSON object");
  command->add_option("--iterations", options->iterations,
                      "Timed runs after one warm-up (default: about one second of runs)");
  command->add_option("--check-rows", options->rows,
                      "Query rows to compare with the double-precision reference (default 8)");
  add_problem_options(*command, options->problem);
  add_engine_options(*command, options->engine);
  command->footer(
      "Example: pagoda run --dtype bf16 --seqlen-q 1 --seqlen-kv 4096 --batch 16 --kv paged\n"
      "         --mask causal --threads 2\n"
      "The exit code is 1 if the error exceeds its limit.");
  command->callback([options] { run_problem(*options); });
}

}  // namespace pagoda::cli
