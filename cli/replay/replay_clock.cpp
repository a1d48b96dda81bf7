// What a step adds to each clock.
#include "cli/replay/replay_clock.hpp"

#include <algorithm>
#include <thread>

namespace pagoda::replay {

double ReplayClock::elapsed() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

void ReplayClock::charge(const StepCost& cost) {
  if (kind_ == ClockKind::kMeasured) {
    now_ += cost.attention_seconds + cost.append_seconds;
  } else if (kind_ == ClockKind::kVirtual) {
    now_ += device_.step_overhead_s +
            std::max(cost.flops / device_.flops_per_s, cost.bytes / device_.bytes_per_s);
  }
}

void ReplayClock::advance_to(double seconds, const std::function<bool()>& is_cancelled) {
  if (kind_ != ClockKind::kWall) {
    now_ = std::max(now_, seconds);
    return;
  }
  constexpr double kNap = 0.05;  // how soon a cancellation is noticed
  while (!is_cancelled() && elapsed() < seconds) {
    std::this_thread::sleep_for(std::chrono::duration<double>(std::min(kNap, seconds - elapsed())));
  }
}

}  // namespace pagoda::replay
