// A plan is found by the signature of its call, the options, and what else decides its tensor maps.
#include "engine/kept_plans.hpp"

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

namespace pagoda::engine {
namespace {

// The options that decide a plan. A new field of Options must be sorted in here.
auto decisive(const Options& options) {
  const auto& [backend, kernel, executor, stream, is_batch_invariant, schedule, num_kv_splits,
               checks_indices] = options;
  static_cast<void>(stream), static_cast<void>(checks_indices);
  return std::tie(backend, kernel, executor, is_batch_invariant, schedule, num_kv_splits);
}

struct KeptPlan {
  Plan plan;
  Options options;
  int64_t num_pages, total_kv;  // a plan may run on other sizes, but was not made for them
  uint64_t last_use;

  [[nodiscard]] bool serves(const core::Problem& problem, const Options& wanted) const {
    return num_pages == problem.num_pages && total_kv == problem.total_kv &&
           decisive(options) == decisive(wanted) && plan.state().signature.matches(problem);
  }
};

struct KeptPlans {
  std::vector<KeptPlan> plans;  // at most kMaxKeptPlans
  uint64_t uses = 0;
};

thread_local KeptPlans kept;

void keep(KeptPlan made) {
  if (kept.plans.size() < kMaxKeptPlans) {
    kept.plans.push_back(std::move(made));
    return;
  }
  *std::min_element(kept.plans.begin(), kept.plans.end(), [](const KeptPlan& a, const KeptPlan& b) {
    return a.last_use < b.last_use;
  }) = std::move(made);
}

}  // namespace

Result<Plan> kept_plan(const core::Problem& problem, const Options& options) {
  // Rows for a functor may be registered between two calls.
  if (problem.has_host_lengths || problem.functor.type != nullptr) {
    return make_plan(problem, options);
  }
  for (KeptPlan& each : kept.plans) {
    if (!each.serves(problem, options)) continue;
    each.last_use = ++kept.uses;
    return each.plan;
  }
  Result<Plan> made = make_plan(problem, options);
  if (made) keep({*made, options, problem.num_pages, problem.total_kv, ++kept.uses});
  return made;
}

}  // namespace pagoda::engine
