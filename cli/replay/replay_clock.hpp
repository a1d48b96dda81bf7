// The clock that a replay's arrivals and latencies follow.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

#include "cli/replay/layer_stack.hpp"

namespace pagoda::replay {

enum class ClockKind : uint8_t {
  kVirtual,   // a step takes the time of a modelled device: every run is the same
  kMeasured,  // a step takes the measured time of append and attention; arrivals take no waiting
  kWall,      // real time: synthesis and checks count too, and the replay waits for arrivals
};

// The modelled device of the virtual clock: a step takes step_overhead plus the longer of
// flops / flops_per_s and bytes / bytes_per_s.
struct ModelledDevice {
  double flops_per_s = 250e9;
  double bytes_per_s = 25e9;
  double step_overhead_s = 100e-6;
};

class ReplayClock {
 public:
  ReplayClock(ClockKind kind, const ModelledDevice& device) : kind_(kind), device_(device) {}

  // Seconds since the start of the replay.
  [[nodiscard]] double now() const { return kind_ == ClockKind::kWall ? elapsed() : now_; }

  void charge(const StepCost& cost);

  // Advances to `seconds`; the wall clock sleeps, and returns early once `is_cancelled`.
  void advance_to(double seconds, const std::function<bool()>& is_cancelled);

 private:
  [[nodiscard]] double elapsed() const;

  ClockKind kind_;
  ModelledDevice device_;
  double now_ = 0;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace pagoda::replay
