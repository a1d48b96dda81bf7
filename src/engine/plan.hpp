// Plan::State: the selected kernel, its KernelPlan, and the signature of the planned call.
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

// `options` with the default executor if it has none. Everything below the public API needs one.
[[nodiscard]] Options with_executor(const Options& options);

// `options` must come from with_executor().
[[nodiscard]] Result<Plan> make_plan(const core::Problem& problem, const Options& options);

}  // namespace pagoda::engine
