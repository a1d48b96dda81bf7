// Measures cases on a GPU with events and flushed caches, and compares with the bandwidth of a
// copy.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "cli/bench_runner.hpp"

namespace pagoda::cli {

struct DeviceResult {
  std::string name, grid;
  ProblemSpec spec;
  std::string rejection;  // why the engine rejected it; the other fields are then empty
  std::string kernel;
  bench::Work work;
  int64_t workspace_bytes = 0, split_rows = 0;
  ErrorReport error;
  std::vector<double> seconds;

  [[nodiscard]] double time() const { return median(seconds); }
  [[nodiscard]] bool passes() const { return !rejection.empty() || error.passes(); }
};

// Bytes per second that a device-to-device copy of gigabytes reads and writes.
[[nodiscard]] double measure_copy(core::MemorySpace& space);

// A rejected case gives a result with a `rejection`.
[[nodiscard]] DeviceResult run_device_case(const BenchCase& bench_case,
                                           const BenchSettings& settings);

void print_device_results(const std::vector<DeviceResult>& results, double copy_bytes_per_second);
[[nodiscard]] nlohmann::ordered_json to_json(const DeviceResult& result,
                                             double copy_bytes_per_second);
[[nodiscard]] nlohmann::ordered_json to_json(const core::SpaceFacts& facts);

}  // namespace pagoda::cli
