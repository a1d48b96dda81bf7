// What stands behind a Plan: the chosen kernel, what it prepared, and for which call.
#pragma once

#include <memory>
#include <string>

#include "engine/cost.hpp"
#include "engine/registry.hpp"
#include "engine/signature.hpp"
#include "pagoda/attention.hpp"

namespace pagoda {

struct Plan::State {
  const core::Kernel* kernel = nullptr;
  const core::Backend* backend = nullptr;
  std::string kernel_name;
  std::unique_ptr<core::KernelPlan> kernel_plan;
  engine::Signature signature;
  engine::Cost cost;
  Executor* executor = nullptr;
};

}  // namespace pagoda

namespace pagoda::engine {

// Options with an executor; everything below the public functions relies on that.
[[nodiscard]] Options with_executor(const Options& options);

// `options` from with_executor().
[[nodiscard]] Result<Plan> make_plan(const core::Problem& problem, const Options& options);

}  // namespace pagoda::engine
