// The calls of synchronising primitives: each is a step of the schedule, and the mutant of the run
// may change it.
#pragma once

#include <cstdint>

#include "emulator/machine/launch_shape.hpp"
#include "emulator/machine/mutation.hpp"
#include "emulator/machine/options.hpp"
#include "emulator/machine/scheduler.hpp"
#include "emulator/report/reporter.hpp"
#include "emulator/sync/scope.hpp"

namespace pagoda::emulator {

class MutationPoints {
 public:
  MutationPoints(const LaunchShape& shape, const Options& options, Scheduler& scheduler,
                 Reporter& reporter)
      : sites_(options.mutation),
        max_steps_(options.max_steps),
        num_ctas_(shape.num_ctas()),
        cluster_size_(shape.ctas_per_cluster()),
        scheduler_(scheduler),
        reporter_(reporter) {}

  // What the mutant does to this call: one of `kinds`, or nothing. Called once for each call of a
  // primitive, before its effect.
  Mutation at(const char* primitive, const Where& where, Mutations kinds);
  // True: the mutant leaves this call out.
  bool is_dropped(const char* primitive, const Where& where) {
    return at(primitive, where, Mutation::kDrop) == Mutation::kDrop;
  }
  // A fault by name (arch/fault.hpp): all lines that name it have it together. No step.
  Mutation at_name(const char* fault, const Where& where, Mutations kinds) {
    return sites_ == nullptr ? Mutation::kNone : sites_->at_name(fault, where, kinds);
  }
  // False in an ordinary run: no call can be changed, and none is counted.
  [[nodiscard]] bool are_counted() const { return sites_ != nullptr; }

  // The next narrower scope that excludes a thread of the launch; `scope` itself: there is none.
  [[nodiscard]] Scope narrowed(Scope scope) const;
  [[nodiscard]] Mutations narrower(Scope scope) const {
    return narrowed(scope) == scope ? Mutations() : Mutation::kNarrow;
  }

 private:
  MutationSites* sites_;  // nullptr: an ordinary run
  uint64_t max_steps_;
  uint32_t num_ctas_, cluster_size_;
  Scheduler& scheduler_;
  Reporter& reporter_;
};

}  // namespace pagoda::emulator
