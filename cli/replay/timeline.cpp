// Spreads steps over bins.
#include "cli/replay/timeline.hpp"

#include <algorithm>
#include <utility>

namespace pagoda::replay {

namespace {

// Adds `share` of the step's tokens, and its gauges for `seconds`, not yet divided by the width.
void add(TimelineBin& bin, const StepSample& step, double share, double seconds) {
  bin.prefill_tokens_per_s += share * step.prefill_tokens;
  bin.decode_tokens_per_s += share * step.decode_tokens;
  bin.running += seconds * step.running;
  bin.waiting += seconds * step.waiting;
  bin.held_share += seconds * static_cast<double>(step.held_share);
  bin.cached_share += seconds * static_cast<double>(step.cached_share);
}

void divide(TimelineBin& bin, double width) {
  for (double* value : {&bin.prefill_tokens_per_s, &bin.decode_tokens_per_s, &bin.running,
                        &bin.waiting, &bin.held_share, &bin.cached_share}) {
    *value /= width;
  }
}

}  // namespace

std::vector<TimelineBin> make_timeline(std::span<const StepSample> steps, int64_t num_bins) {
  if (steps.empty() || steps.back().end_s <= 0) return {};
  const double width = steps.back().end_s / static_cast<double>(num_bins);
  std::vector<TimelineBin> bins(static_cast<size_t>(num_bins));
  const auto bin_of = [&](double time) {
    return std::clamp<int64_t>(static_cast<int64_t>(time / width), 0, num_bins - 1);
  };
  StepSample idle;  // between two steps only the cache holds something
  for (const StepSample& step : steps) {
    idle.start_s = idle.end_s;
    idle.end_s = step.start_s;
    for (const StepSample* sample : {&std::as_const(idle), &step}) {
      const double length = sample->end_s - sample->start_s;
      const int64_t last = bin_of(sample->end_s);
      for (int64_t i = bin_of(sample->start_s); i <= last; ++i) {
        const double low = std::max(sample->start_s, static_cast<double>(i) * width);
        const double high =
            i == last ? sample->end_s : std::min(sample->end_s, static_cast<double>(i + 1) * width);
        const double share = length > 0 ? (high - low) / length : (i == last ? 1.0 : 0.0);
        add(bins[static_cast<size_t>(i)], *sample, share, high - low);
      }
    }
    idle.end_s = step.end_s;
    idle.cached_share = step.cached_share_after;
  }
  for (int64_t i = 0; i < num_bins; ++i) {
    TimelineBin& bin = bins[static_cast<size_t>(i)];
    bin.start_s = static_cast<double>(i) * width;
    divide(bin, width);
  }
  return bins;
}

}  // namespace pagoda::replay
