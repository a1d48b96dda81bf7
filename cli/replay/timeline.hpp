// A replay over time, in equal bins: what the pictures draw. Tokens of a step are spread evenly
// over its duration; gauges are means over time.
#pragma once

#include <span>
#include <vector>

#include "cli/replay/metrics.hpp"

namespace pagoda::replay {

struct TimelineBin {
  double start_s = 0;
  double prefill_tokens_per_s = 0;
  double decode_tokens_per_s = 0;
  double running = 0;
  double waiting = 0;
  double held_share = 0;
  double cached_share = 0;
};

// Covers [0, end of the last step]; empty if that is empty.
[[nodiscard]] std::vector<TimelineBin> make_timeline(std::span<const StepSample> steps,
                                                     int64_t num_bins);

}  // namespace pagoda::replay
