// For each case: data on the device, a few warm-up runs, then the timed runs.
#include "cli/device_bench.hpp"

#include <algorithm>
#include <fmt/format.h>

#include "cli/terminal.hpp"

namespace pagoda::cli {
namespace {

constexpr int64_t kWarmUps = 3;
constexpr int64_t kMinRepeats = 10;
constexpr int64_t kMaxRepeats = 200;
constexpr double kFlushSeconds = 1e-4;  // about the time of a flush between two runs

int64_t choose_repeats(const BenchSettings& settings, const std::vector<double>& first) {
  if (settings.repeats > 0) return settings.repeats;
  const double each = *std::min_element(first.begin(), first.end()) + kFlushSeconds;
  return std::clamp(static_cast<int64_t>(settings.seconds_per_case / each), kMinRepeats,
                    kMaxRepeats);
}

double best_of(const DeviceResult& result) {
  return *std::min_element(result.seconds.begin(), result.seconds.end());
}

}  // namespace

double measure_copy(core::MemorySpace& space) {
  const int64_t free = space.free_bytes();
  const int64_t bytes = std::clamp<int64_t>(free / 8, 1 << 20, int64_t{4} << 30);
  const mirror::Block from(space, bytes), to(space, bytes);
  space.fill(from.data(), std::byte{1}, bytes);
  const auto copy = [&] { space.copy_within(to.data(), from.data(), bytes); };
  static_cast<void>(space.time(2, copy));
  return 2 * static_cast<double>(bytes) / median(space.time(10, copy));
}

DeviceResult run_device_case(const BenchCase& bench_case, const BenchSettings& settings) {
  DeviceResult result;
  result.name = bench_case.name;
  result.grid = bench_case.grid;
  result.spec = bench_case.spec;
  const Options options{.backend = settings.backend, .kernel = settings.kernel};
  result.rejection = rejection_reason(bench_case.spec, options);
  if (!result.rejection.empty()) return result;
  PlannedProblem problem(bench_case.spec, options);
  result.kernel = problem.plan().kernel();
  result.work = problem.work();
  result.workspace_bytes = problem.plan().workspace_bytes();
  result.split_rows = problem.plan().num_split_rows();
  problem.run_once();
  result.error = compare_with_reference(bench_case.spec, problem.buffers(), settings.rows_checked);
  result.seconds = problem.time_runs(choose_repeats(settings, problem.time_runs(kWarmUps)));
  return result;
}

void print_device_results(const std::vector<DeviceResult>& results, double copy) {
  using Align = Table::Align;
  Table table({{"case"},
               {"kernel"},
               {"median", Align::kRight},
               {"best", Align::kRight},
               {"TFLOP/s", Align::kRight},
               {"GB/s", Align::kRight},
               {"of copy", Align::kRight},
               {"workspace", Align::kRight},
               {"error"}});
  std::string grid;
  for (const DeviceResult& r : results) {
    if (!grid.empty() && grid != r.grid) table.add_separator();
    grid = r.grid;
    if (!r.rejection.empty()) {
      table.add({r.name, paint("unsupported: " + r.rejection, Style::kYellow)});
      continue;
    }
    const double bandwidth = r.work.bytes / r.time();
    table.add({r.name, r.kernel, format_seconds(r.time()), format_seconds(best_of(r)),
               fmt::format("{:.1f}", r.work.flops / r.time() * 1e-12),
               fmt::format("{:.0f}", bandwidth * 1e-9),
               fmt::format("{:.0f} %", 100 * bandwidth / copy),
               format_bytes(static_cast<double>(r.workspace_bytes)),
               r.error.passes() ? fmt::format("{:.0e}", r.error.max_relative)
                                : paint("WRONG", Style::kRed)});
  }
  table.print();
}

nlohmann::ordered_json to_json(const DeviceResult& r, double copy) {
  nlohmann::ordered_json json = {{"name", r.name}, {"grid", r.grid}, {"problem", to_json(r.spec)}};
  if (!r.rejection.empty()) {
    json["unsupported"] = r.rejection;
    return json;
  }
  const double time = r.time();
  json.update({{"kernel", r.kernel},
               {"flops", r.work.flops},
               {"bytes", r.work.bytes},
               {"workspace_bytes", r.workspace_bytes},
               {"split_rows", r.split_rows},
               {"repeats", r.seconds.size()},
               {"median_seconds", time},
               {"min_seconds", best_of(r)},
               {"tflops_per_second", r.work.flops / time * 1e-12},
               {"gigabytes_per_second", r.work.bytes / time * 1e-9},
               {"copy_share", r.work.bytes / time / copy},
               {"max_relative_error", r.error.max_relative},
               {"error_over_limit", r.error.over_limit},
               {"passed", r.error.passes()}});
  return json;
}

nlohmann::ordered_json to_json(const core::SpaceFacts& facts) {
  return {{"name", facts.name},
          {"driver", facts.driver},
          {"multiprocessors", facts.num_multiprocessors},
          {"l2_bytes", facts.l2_bytes},
          {"memory_bytes", facts.memory_bytes}};
}

}  // namespace pagoda::cli
