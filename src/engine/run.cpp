// run(): check that the call is the planned one, then hand it to the planned kernel.
#include <cstdlib>
#include <memory>
#include <utility>

#include "engine/check.hpp"
#include "engine/guard.hpp"
#include "engine/plan.hpp"
#include "engine/validate.hpp"

namespace pagoda {
namespace {

// Grows and never shrinks; 64-byte aligned.
class Workspace {
 public:
  std::span<std::byte> at_least(int64_t bytes) {
    const auto wanted = static_cast<size_t>(bytes);
    if (wanted > size_) {
      memory_.reset();
      size_ = 0;
      memory_.reset(static_cast<std::byte*>(
          ::operator new (wanted, std::align_val_t{engine::kWorkspaceAlignment})));
      size_ = wanted;
    }
    return {memory_.get(), wanted};
  }
  [[nodiscard]] size_t size() const { return size_; }

 private:
  struct Free {
    void operator()(std::byte* p) const {
      ::operator delete (p, std::align_val_t{engine::kWorkspaceAlignment});
    }
  };
  std::unique_ptr<std::byte, Free> memory_;
  size_t size_ = 0;
};

thread_local Workspace kept_workspace;

// Takes the thread's workspace while a call uses it: a call from inside another one (a functor, or
// a task that the executor runs while it waits) then gets memory of its own.
class WorkspaceLease {
 public:
  explicit WorkspaceLease(int64_t bytes) : workspace_(std::exchange(kept_workspace, Workspace{})) {
    span_ = workspace_.at_least(bytes);
  }
  ~WorkspaceLease() {
    if (workspace_.size() > kept_workspace.size()) kept_workspace = std::move(workspace_);
  }
  WorkspaceLease(const WorkspaceLease&) = delete;
  WorkspaceLease& operator=(const WorkspaceLease&) = delete;
  [[nodiscard]] std::span<std::byte> span() const { return span_; }

 private:
  Workspace workspace_;
  std::span<std::byte> span_;
};

Status check_workspace(const Plan::State& state, std::span<std::byte> workspace) {
  const int64_t needed = state.kernel_plan->workspace_bytes;
  if (needed == 0) return {};
  if (std::cmp_less(workspace.size(), needed)) {
    return engine::complain("workspace.size()", static_cast<int64_t>(workspace.size()),
                            "must be at least workspace_bytes() = " + std::to_string(needed));
  }
  if (reinterpret_cast<uintptr_t>(workspace.data()) % engine::kWorkspaceAlignment != 0) {
    return engine::complain("workspace.data()", "misaligned", "must be a multiple of 64");
  }
  return {};
}

void launch(const Plan::State& state, const core::Problem& problem,
            std::span<std::byte> workspace) {
  const auto bytes = static_cast<size_t>(state.kernel_plan->workspace_bytes);
  state.kernel->run(*state.kernel_plan, problem, workspace.first(bytes), *state.executor);
}

}  // namespace

Status run(const Plan& plan, const Attention& attention, std::span<std::byte> workspace) {
  return engine::guarded([&]() -> Status {
    // Index contents are as plan()'s options wanted them then; only their sizes are checked here.
    const Result<core::Problem> problem = engine::validate(attention, {});
    if (!problem) return problem.status();
    const Plan::State& state = plan.state();
    if (Status s = state.signature.match(*problem); !s) return s;
    if (Status s = check_workspace(state, workspace); !s) return s;
    launch(state, *problem, workspace);
    return {};
  });
}

Status run(const Attention& attention, const Options& options) {
  return engine::guarded([&]() -> Status {
    const Result<core::Problem> problem = engine::validate(attention, options);
    if (!problem) return problem.status();
    const Result<Plan> plan = engine::make_plan(*problem, engine::with_executor(options));
    if (!plan) return plan.status();
    const WorkspaceLease workspace(plan->workspace_bytes());
    launch(plan->state(), *problem, workspace.span());
    return {};
  });
}

}  // namespace pagoda
