// Allocation of the workspace, and its lease to the running call.
#include "engine/host_workspace.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/int_math.hpp"

namespace pagoda::engine {
namespace {

thread_local HostWorkspace kept_workspace;

}  // namespace

static_assert(core::HostMemory::kAlignment >= core::kWorkspaceAlignment);

std::span<std::byte> HostWorkspace::at_least(core::WorkspaceSize size) {
  const auto zeroed =
      static_cast<size_t>(core::align_up<int64_t>(size.zeroed, core::kWorkspaceAlignment));
  const auto scratch = static_cast<size_t>(size.bytes - size.zeroed);
  if (zeroed > zeroed_ || scratch > scratch_) {
    const size_t new_zeroed = std::max(zeroed, zeroed_), new_scratch = std::max(scratch, scratch_);
    memory_ = {};
    zeroed_ = scratch_ = 0;
    memory_ = core::HostMemory(new_zeroed + new_scratch);
    zeroed_ = new_zeroed;
    scratch_ = new_scratch;
    std::memset(memory_.data(), 0, zeroed_);
  }
  return {memory_.data() + zeroed_ - size.zeroed, static_cast<size_t>(size.bytes)};
}

HostWorkspaceLease::HostWorkspaceLease(core::WorkspaceSize size)
    : workspace_(std::exchange(kept_workspace, HostWorkspace{})),
      span_(workspace_.at_least(size)) {}

void HostWorkspaceLease::give_back() {
  if (workspace_.size() > kept_workspace.size()) kept_workspace = std::move(workspace_);
}

void release_host_workspace() { kept_workspace = HostWorkspace{}; }

size_t kept_host_bytes() { return kept_workspace.size(); }

}  // namespace pagoda::engine
