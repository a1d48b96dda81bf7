// Steps of the schedule, and the mutant at each.
#include "emulator/machine/mutation_points.hpp"

#include <string>

#include "emulator/machine/hierarchy.hpp"

namespace pagoda::emulator {

Mutation MutationPoints::at(const char* primitive, const Where& where, Mutations kinds) {
  scheduler_.maybe_yield();
  if (scheduler_.next_step() > max_steps_) {
    reporter_.fail(ReportKind::kDeadlock, primitive, where,
                   "the kernel has not ended after " + std::to_string(max_steps_) +
                       " synchronising calls (Options::max_steps)");
  }
  if (sites_ == nullptr) return Mutation::kNone;
  return sites_->at(primitive, where, scheduler_.running()->role, kinds);
}

Scope MutationPoints::narrowed(Scope scope) const {
  if (scope >= Scope::kGpu && num_ctas_ > cluster_size_) {
    return cluster_size_ > 1 ? Scope::kCluster : Scope::kCta;
  }
  return scope != Scope::kCta && cluster_size_ > 1 ? Scope::kCta : scope;
}

}  // namespace pagoda::emulator
