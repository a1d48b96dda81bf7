// Which output rows of a step are checked: a random one of each phase that the step contains, and
// every first chunk after a reused prefix.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "cli/replay/row_check.hpp"
#include "cli/replay/scheduler.hpp"

namespace pagoda::replay {

struct SampledRow {
  CheckedRow row;
  int32_t sequence = 0;
  int64_t batch_row = 0;  // of the step's output
  Phase phase = Phase::kPrefill;
};

class RowSampler {
 public:
  // `rate`: rows of each phase and step, on average; the first step of a phase is always sampled.
  // 0 = check nothing.
  RowSampler(double rate, int32_t num_layers, int32_t num_q_heads, uint64_t seed);

  [[nodiscard]] std::vector<SampledRow> choose(const Step& step);

 private:
  [[nodiscard]] uint64_t below(uint64_t limit);  // the next random number
  [[nodiscard]] int64_t draw_count(Phase phase);
  [[nodiscard]] SampledRow draw(const Step& step, size_t chunk, int64_t first_batch_row);

  double rate_;
  int32_t num_layers_, num_q_heads_;
  uint64_t state_;
  std::array<bool, kNumPhases> was_seen_{};
};

}  // namespace pagoda::replay
