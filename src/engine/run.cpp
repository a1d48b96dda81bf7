// run(): checks the call against the plan's signature, or plans it, then runs the planned kernel.
#include <utility>

#include "engine/check.hpp"
#include "engine/guard.hpp"
#include "engine/host_workspace.hpp"
#include "engine/kept_plans.hpp"
#include "engine/validate.hpp"

namespace pagoda {
namespace {

Status check_workspace(const Plan::State& state, std::span<std::byte> workspace) {
  const int64_t needed = state.kernel_plan->workspace_bytes;
  if (needed == 0) return {};
  if (std::cmp_less(workspace.size(), needed)) {
    return engine::complain("workspace.size()", static_cast<int64_t>(workspace.size()),
                            "must be at least workspace_bytes() = " + std::to_string(needed));
  }
  if (reinterpret_cast<uintptr_t>(workspace.data()) % core::kWorkspaceAlignment != 0) {
    return engine::complain("workspace.data()", "misaligned", "must be a multiple of 64");
  }
  return {};
}

void launch(const Plan::State& state, const core::Problem& problem, std::span<std::byte> workspace,
            Stream stream) {
  const auto bytes = static_cast<size_t>(state.kernel_plan->workspace_bytes);
  const core::RunContext context{.executor = state.executor, .stream = stream};
  state.kernel->run(*state.kernel, *state.kernel_plan, problem, workspace.first(bytes), context);
  if (problem.zero_padding_rows) state.backend->zero_padding_rows(problem, context);
}

Status launch_in_kept_workspace(const Plan::State& state, const core::Problem& problem,
                                Stream stream) {
  const core::KernelPlan& plan = *state.kernel_plan;
  const core::WorkspaceSize size{plan.workspace_bytes, plan.zeroed_workspace_bytes};
  if (state.backend->keep_workspace != nullptr) {
    const Result<std::span<std::byte>> workspace =
        state.backend->keep_workspace(size, problem.device, stream);
    if (!workspace) return workspace.status();
    launch(state, problem, *workspace, stream);
    return {};
  }
  engine::HostWorkspaceLease workspace(size);
  launch(state, problem, workspace.span(), stream);
  workspace.give_back();
  return {};
}

}  // namespace

Status run(const Plan& plan, const Attention& attention, std::span<std::byte> workspace,
           Stream stream) {
  return engine::guarded([&]() -> Status {
    const Plan::State& state = plan.state();
    // Page ids are not checked here, only in plan() with Options::checks_indices.
    const Result<core::Problem> problem = engine::validate_for(*state.backend, attention, false);
    if (!problem) return problem.status();
    if (Status s = state.signature.match(*problem); !s) return s;
    if (Status s = check_workspace(state, workspace); !s) return s;
    launch(state, *problem, workspace, stream);
    return {};
  });
}

Status run(const Attention& attention, const Options& options) {
  return engine::guarded([&]() -> Status {
    const Result<core::Problem> problem = engine::validate(attention, options);
    if (!problem) return problem.status();
    const Result<Plan> plan = engine::kept_plan(*problem, engine::with_executor(options));
    if (!plan) return plan.status();
    return launch_in_kept_workspace(plan->state(), *problem, options.stream);
  });
}

Status release_workspaces() {
  return engine::guarded([]() -> Status {
    engine::release_host_workspace();
    for (const core::Backend* backend : engine::registry()) {
      if (backend->release_workspaces != nullptr) backend->release_workspaces();
    }
    return {};
  });
}

}  // namespace pagoda
