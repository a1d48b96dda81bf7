// One problem in memory, a pool and a plan for each thread count, one run of each in turn.
#include "cli/bench_runner.hpp"

#include <algorithm>
#include <memory>

#include "bench/pinned_pool.hpp"
#include "cli/terminal.hpp"
#include "pagoda/backend.hpp"

namespace pagoda::cli {
namespace {

constexpr int64_t kMinRepeats = 5;
constexpr int64_t kMaxRepeats = 300;
constexpr int64_t kPlanRepeats = 500;

int64_t choose_repeats(const BenchSettings& settings, double first_seconds) {
  if (settings.repeats > 0) return settings.repeats;
  const auto wanted =
      static_cast<int64_t>(settings.seconds_per_case / std::max(first_seconds, 1e-7));
  return std::clamp(wanted, kMinRepeats, kMaxRepeats);
}

}  // namespace

BenchResult run_bench_case(const BenchCase& bench_case, const BenchSettings& settings,
                           const bench::Ceilings& ceilings) {
  BenchResult result{.name = bench_case.name,
                     .grid = bench_case.grid,
                     .kernel = {},
                     .spec = bench_case.spec,
                     .times_planning = bench_case.times_planning,
                     .work = {},
                     .error = {},
                     .rows = {}};
  std::vector<std::unique_ptr<bench::PinnedPool>> pools;
  for (const int32_t threads : settings.threads) {
    pools.push_back(std::make_unique<bench::PinnedPool>(threads));
    result.rows.push_back({.threads = threads, .seconds = {}, .bound = {}});
  }
  Options options{.backend = settings.backend, .kernel = settings.kernel};
  options.executor = pools.back().get();
  PlannedProblem problem(bench_case.spec, options);
  result.work = problem.work();
  result.kernel = problem.plan().kernel();
  result.workspace_bytes = problem.plan().workspace_bytes();
  result.split_rows = problem.plan().num_split_rows();
  problem.run_once();  // touches every page, checks the answer
  result.error = compare_with_reference(bench_case.spec, problem.buffers(), settings.rows_checked);

  const auto measure = [&](size_t i, int64_t iterations) {
    options.executor = pools[i].get();
    problem.plan_with(options);
    return bench_case.times_planning ? problem.time_plans(iterations)
                                     : problem.time_runs(iterations);
  };
  double slowest = 0;
  for (size_t i = 0; i < pools.size(); ++i) slowest = std::max(slowest, measure(i, 1).front());
  const int64_t repeats =
      bench_case.times_planning ? kPlanRepeats : choose_repeats(settings, slowest);
  for (int64_t repeat = 0; repeat < repeats; ++repeat) {
    for (size_t i = 0; i < pools.size(); ++i) {
      result.rows[i].seconds.push_back(measure(i, 1).front());
    }
  }
  if (!bench_case.times_planning) {
    for (BenchRow& row : result.rows) {
      row.bound = bench::roofline(ceilings, result.work, cpu_isa_level(), row.threads);
    }
  }
  return result;
}

nlohmann::ordered_json to_json(const BenchResult& result) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const BenchRow& row : result.rows) {
    nlohmann::ordered_json json = {
        {"threads", row.threads},
        {"repeats", row.seconds.size()},
        {"median_seconds", row.time()},
        {"min_seconds", *std::min_element(row.seconds.begin(), row.seconds.end())}};
    if (!result.times_planning) {
      json["gflops_per_second"] = result.work.flops / row.time() * 1e-9;
      json["gigabytes_per_second"] = result.work.bytes / row.time() * 1e-9;
      json["roofline_seconds"] = row.bound.seconds;
      json["roofline_share"] = row.share();
      json["bound_by"] = row.bound.limit;
      json["compute_seconds"] = row.bound.compute_seconds;
      json["exp_seconds"] = row.bound.exp_seconds;
      json["memory_seconds"] = row.bound.memory_seconds;
      json["memory_level"] = row.bound.memory_level;
    }
    rows.push_back(std::move(json));
  }
  return {{"name", result.name},
          {"grid", result.grid},
          {"measures", result.times_planning ? "plan" : "run"},
          {"problem", to_json(result.spec)},
          {"kernel", result.kernel},
          {"flops", result.work.flops},
          {"bytes", result.work.bytes},
          {"workspace_bytes", result.workspace_bytes},
          {"split_rows", result.split_rows},
          {"max_relative_error", result.error.max_relative},
          {"error_over_limit", result.error.over_limit},
          {"passed", result.error.passes()},
          {"rows", rows}};
}

}  // namespace pagoda::cli
