// Sums and percentiles.
#include "cli/replay/metrics.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>

namespace pagoda::replay {

Percentiles percentiles(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const auto rank = [&](double share) {
    const double position = std::ceil(share * static_cast<double>(values.size()));
    return values[static_cast<size_t>(std::max(position, 1.0)) - 1];
  };
  return {.p50 = rank(0.5),
          .p90 = rank(0.9),
          .p99 = rank(0.99),
          .mean = std::reduce(values.begin(), values.end()) / static_cast<double>(values.size()),
          .count = std::ssize(values)};
}

int64_t Metrics::completed() const {
  return std::count_if(requests.begin(), requests.end(),
                       [](const RequestMetrics& r) { return r.is_finished(); });
}

int64_t Metrics::total_checked_rows() const {
  return std::reduce(checked_rows.begin(), checked_rows.end());
}

double Metrics::cache_hit_rate() const {
  if (prompt_tokens == 0) return 0;
  return static_cast<double>(reused_tokens) / static_cast<double>(prompt_tokens);
}

Percentiles Metrics::ttft() const {
  std::vector<double> values;
  for (const RequestMetrics& r : requests) {
    if (r.first_token_s >= 0) values.push_back(r.ttft_s());
  }
  return percentiles(std::move(values));
}

Percentiles Metrics::tpot() const {
  std::vector<double> values;
  for (const RequestMetrics& r : requests) {
    if (r.is_finished() && r.output_tokens > 1) values.push_back(r.tpot_s());
  }
  return percentiles(std::move(values));
}

double Metrics::mean_occupancy() const {
  double area = 0;
  for (const StepSample& step : steps) {
    area += static_cast<double>(step.held_share) * (step.end_s - step.start_s);
  }
  const double end = steps.empty() ? 0 : steps.back().end_s;
  return end > 0 ? area / end : 0;
}

double Metrics::peak_occupancy() const {
  float peak = 0;
  for (const StepSample& step : steps) peak = std::max(peak, step.held_share);
  return peak;
}

double Metrics::roofline_share(double flops_per_s, double bytes_per_s) const {
  if (flops_per_s <= 0 || bytes_per_s <= 0 || cost.attention_seconds <= 0) return 0;
  double ideal = 0;
  for (const StepSample& step : steps) {
    ideal += std::max(step.flops / flops_per_s, step.bytes / bytes_per_s);
  }
  return ideal / cost.attention_seconds;
}

uint64_t checksum(uint64_t seed, std::span<const std::byte> bytes) {
  constexpr size_t kLanes = 4;
  constexpr uint64_t kMultiplier = 0x9e3779b97f4a7c15U;
  std::array<uint64_t, kLanes> lanes{seed, ~seed, mix(seed), mix(~seed)};
  const auto absorb = [&](size_t lane, uint64_t word) {
    lanes[lane] = std::rotl((lanes[lane] ^ word) * kMultiplier, 29);
  };
  constexpr size_t kBlock = kLanes * sizeof(uint64_t);
  size_t i = 0;
  for (; i + kBlock <= bytes.size(); i += kBlock) {
    std::array<uint64_t, kLanes> words{};
    std::memcpy(words.data(), bytes.data() + i, kBlock);
    for (size_t lane = 0; lane < kLanes; ++lane) absorb(lane, words[lane]);
  }
  for (; i < bytes.size(); ++i) absorb(i % kLanes, std::to_integer<uint64_t>(bytes[i]));
  return mix(mix(lanes[0], lanes[1]), mix(lanes[2], lanes[3]));
}

}  // namespace pagoda::replay
