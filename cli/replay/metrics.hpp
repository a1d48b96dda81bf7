// The results of a replay: counters, latencies, and one sample per step. summary.hpp and report.hpp
// print them.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cli/replay/layer_stack.hpp"
#include "cli/replay/scheduler.hpp"

namespace pagoda::replay {

struct RequestMetrics {
  double arrival_s = 0;
  double first_token_s = -1;  // negative = not yet
  double finish_s = -1;
  int64_t prompt_tokens = 0;
  int64_t output_tokens = 0;

  [[nodiscard]] bool is_finished() const { return finish_s >= 0; }
  [[nodiscard]] double ttft_s() const { return first_token_s - arrival_s; }
  // Mean time between tokens; only with at least two tokens.
  [[nodiscard]] double tpot_s() const {
    return (finish_s - first_token_s) / static_cast<double>(output_tokens - 1);
  }
};

struct StepSample {
  double start_s = 0;  // by the replay's clock
  double end_s = 0;
  float attention_seconds = 0;
  float append_seconds = 0;
  double flops = 0;
  double bytes = 0;
  int32_t prefill_tokens = 0;
  int32_t decode_tokens = 0;
  int32_t running = 0;
  int32_t waiting = 0;
  float held_share = 0;          // of the cache's pages: in use
  float cached_share = 0;        // kept for reuse only
  float cached_share_after = 0;  // after the step's finished requests were removed
};

struct Percentiles {
  double p50 = 0, p90 = 0, p99 = 0, mean = 0;
  int64_t count = 0;
};
// Nearest rank; zeros without values.
[[nodiscard]] Percentiles percentiles(std::vector<double> values);

struct Mismatch {
  int64_t request = 0, position = 0;
  int32_t layer = 0, q_head = 0;
  std::string phase, what;
};

struct Metrics {
  std::vector<RequestMetrics> requests;
  std::vector<std::string> rejected;  // the messages
  std::vector<StepSample> steps;
  StepCost cost;                 // of all steps
  int64_t prompt_tokens = 0;     // of admitted requests
  int64_t reused_tokens = 0;     // of those, found in the cache
  int64_t computed_tokens = 0;   // prompt, output and recomputed ones
  int64_t processed_tokens = 0;  // of prompts and outputs, reused ones included, each once
  int64_t output_tokens = 0;
  int64_t preemptions = 0;
  int64_t evictions = 0;
  std::array<int64_t, kNumPhases> checked_rows{};
  int64_t mismatches = 0;
  std::vector<Mismatch> first_mismatches;  // a few, to be looked at
  // Over every output of every step and layer; on a GPU over the checked rows.
  uint64_t checksum = 0;
  bool was_interrupted = false;
  double wall_seconds = 0;
  double clock_seconds = 0;
  std::string kernel;

  [[nodiscard]] int64_t completed() const;
  [[nodiscard]] int64_t total_checked_rows() const;
  [[nodiscard]] double cache_hit_rate() const;
  [[nodiscard]] Percentiles ttft() const;
  [[nodiscard]] Percentiles tpot() const;
  [[nodiscard]] double mean_occupancy() const;  // held share, by time
  [[nodiscard]] double peak_occupancy() const;
  // The roofline time of all attention divided by its measured time; 0 if the ceilings are unknown.
  [[nodiscard]] double roofline_share(double flops_per_s, double bytes_per_s) const;
};

// Order-sensitive, four words at a time.
[[nodiscard]] uint64_t checksum(uint64_t seed, std::span<const std::byte> bytes);

}  // namespace pagoda::replay
