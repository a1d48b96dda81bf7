// The plans of the calls that run(attention, options) served last on a GPU, kept per thread: a
// decode step repeats a call with other pointers, once per layer. Not those of host memory, whose
// lengths change with every step.
#pragma once

#include "engine/plan.hpp"

namespace pagoda::engine {

// Per thread; the one that was used longest ago makes room. A model has one or two kinds of layers,
// and steps of a few batch sizes.
inline constexpr size_t kMaxKeptPlans = 8;

// What make_plan() returns, or has returned for a call and options with the same decisions.
[[nodiscard]] Result<Plan> kept_plan(const core::Problem& problem, const Options& options);

}  // namespace pagoda::engine
