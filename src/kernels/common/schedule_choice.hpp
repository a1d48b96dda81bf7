// ScheduleChoice: what Options::schedule and Options::num_kv_splits ask of a launch plan.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string>

#include "core/kernel.hpp"
#include "kernels/common/attention_params.hpp"

namespace pagoda::kernels {

struct ScheduleChoice {
  pagoda::Schedule schedule = pagoda::Schedule::kAutomatic;
  int32_t num_kv_splits = 0;        // 0: the plan chooses
  bool is_batch_invariant = false;  // no row tile is split

  static ScheduleChoice of(const Options& options) {
    return {options.schedule, options.num_kv_splits, options.is_batch_invariant};
  }

  [[nodiscard]] bool is_automatic() const { return schedule == pagoda::Schedule::kAutomatic; }
  [[nodiscard]] bool may_split() const { return !is_batch_invariant && num_kv_splits != 1; }
  // Whether sequences may be served by a stream-K partition, and whether by a grid of row tiles.
  [[nodiscard]] bool allows_stream_k() const {
    return schedule == pagoda::Schedule::kStreamK || (is_automatic() && num_kv_splits <= 1);
  }
  [[nodiscard]] bool allows_tiles() const { return schedule != pagoda::Schedule::kStreamK; }

  // The schedule of a grid of row tiles.
  [[nodiscard]] Schedule of_tiles(Schedule automatic) const {
    switch (schedule) {
      case pagoda::Schedule::kTransient: return Schedule::kTransient;
      case pagoda::Schedule::kPersistent: return Schedule::kPersistent;
      case pagoda::Schedule::kQueue: return Schedule::kQueue;
      default: return automatic;
    }
  }
  // KV splits of a row tile of at most `key_tiles` KV tiles.
  [[nodiscard]] int32_t splits(int32_t automatic, int32_t key_tiles) const {
    if (!may_split()) return 1;
    return num_kv_splits == 0 ? automatic : std::max(1, std::min(num_kv_splits, key_tiles));
  }
};

// core::Kernel::fit of kernels that have these schedules beside automatic.
inline core::Fit fit_of_schedule(const Options& options,
                                 std::initializer_list<pagoda::Schedule> schedules,
                                 std::string* reason) {
  const pagoda::Schedule asked = options.schedule;
  if (asked == pagoda::Schedule::kAutomatic ||
      std::find(schedules.begin(), schedules.end(), asked) != schedules.end()) {
    return core::Fit::kServes;
  }
  return core::unfit(core::Fit::kFeatures, reason, [&] {
    std::string text = std::string("has no schedule ") + name(asked) + ": automatic";
    for (const pagoda::Schedule each : schedules) text += std::string(", ") + name(each);
    return text;
  });
}

// The same of kernels that split no keys by number.
inline core::Fit fit_without_splits(const Options& options, std::string* reason) {
  if (options.num_kv_splits <= 1) return core::Fit::kServes;
  return core::unfit(core::Fit::kFeatures, reason, [&] {
    return "can't split keys into " + std::to_string(options.num_kv_splits) + " parts: 0 or 1";
  });
}

}  // namespace pagoda::kernels
