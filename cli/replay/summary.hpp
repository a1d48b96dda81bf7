// The output of a replay: one JSON object, or a table.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "cli/replay/metrics.hpp"
#include "cli/replay/session.hpp"

namespace pagoda::replay {

// The context of the numbers.
struct SummaryContext {
  std::string trace_name;
  int32_t threads = 1;
  std::string device;  // its name; empty on the host
  std::string isa;
  int64_t malformed_lines = 0;
  double ceiling_flops_per_s = 0;  // 0 = not measured
  double ceiling_bytes_per_s = 0;
};

// "virtual clock: a device of 250 GFLOP/s and 25 GB/s": printed with every latency.
[[nodiscard]] std::string describe_clock(const SessionConfig& config);

[[nodiscard]] nlohmann::ordered_json summary_json(const SessionConfig& config,
                                                  const SummaryContext& context,
                                                  const Metrics& metrics);

// The configuration, printed before the run.
void print_header(const SessionConfig& config, const SummaryContext& context, const Trace& trace);
// The table; its last line counts the mismatches.
void print_summary(const SessionConfig& config, const SummaryContext& context,
                   const Metrics& metrics);

}  // namespace pagoda::replay
