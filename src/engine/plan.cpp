// plan(): validates, selects a kernel, calls its plan function, records the call's signature.
#include "engine/plan.hpp"

#include <cassert>

#include "engine/guard.hpp"
#include "engine/select.hpp"
#include "engine/validate.hpp"

namespace pagoda {

int64_t Plan::workspace_bytes() const { return state_->kernel_plan->workspace_bytes; }
int64_t Plan::zeroed_workspace_bytes() const { return state_->kernel_plan->zeroed_workspace_bytes; }
int64_t Plan::worker_scratch_bytes() const { return state_->kernel_plan->worker_scratch_bytes; }
const std::string& Plan::kernel() const { return state_->kernel_name; }
int64_t Plan::num_work_items() const { return state_->kernel_plan->num_work_items; }
int64_t Plan::num_split_rows() const { return state_->kernel_plan->num_split_rows; }
double Plan::flops() const { return state_->cost.flops; }
double Plan::kv_bytes() const { return state_->cost.kv_bytes; }

Result<Plan> plan(const Attention& attention, const Options& options) {
  return engine::guarded([&]() -> Result<Plan> {
    const Result<core::Problem> problem = engine::validate(attention, options);
    if (!problem) return problem.status();
    return engine::make_plan(*problem, engine::with_executor(options));
  });
}

namespace engine {

Options with_executor(const Options& options) {
  Options resolved = options;
  if (resolved.executor == nullptr) resolved.executor = &default_executor();
  return resolved;
}

Result<Plan> make_plan(const core::Problem& problem, const Options& options) {
  const Result<const core::Kernel*> kernel = select(problem, options);
  if (!kernel) return kernel.status();
  Result<std::unique_ptr<core::KernelPlan>> kernel_plan =
      (*kernel)->plan(**kernel, problem, options);
  if (!kernel_plan) return kernel_plan.status();
  assert((*kernel_plan)->zeroed_workspace_bytes % core::kWorkspaceAlignment == 0);
  assert((*kernel_plan)->zeroed_workspace_bytes <= (*kernel_plan)->workspace_bytes);

  auto state = std::make_shared<Plan::State>();
  state->kernel = *kernel;
  state->backend = *backend_of(options, problem.device);
  state->kernel_name = (*kernel)->name;
  state->kernel_plan = std::move(*kernel_plan);
  state->signature = Signature(problem);
  state->cost = cost(problem);
  state->executor = options.executor;
  return Plan(std::move(state));
}

}  // namespace engine
}  // namespace pagoda
