// HostWorkspace: host memory for run(attention, options), kept per thread between calls.
#pragma once

#include <cstddef>
#include <span>

#include "core/backend.hpp"
#include "core/host_memory.hpp"

namespace pagoda::engine {

// Grows and never shrinks. The zeroed bytes of every plan end, and its scratch begins, at the same
// address: no run's scratch overlaps bytes that a later run expects to be zero.
class HostWorkspace {
 public:
  [[nodiscard]] std::span<std::byte> at_least(core::WorkspaceSize size);
  [[nodiscard]] size_t size() const { return zeroed_ + scratch_; }

 private:
  core::HostMemory memory_;  // [zeroed_ + scratch_]
  size_t zeroed_ = 0;
  size_t scratch_ = 0;
};

// Owns the thread's workspace during a call. A nested call (from a functor, or from a task that the
// executor runs while it waits) finds it taken and allocates another one.
class HostWorkspaceLease {
 public:
  explicit HostWorkspaceLease(core::WorkspaceSize size);
  HostWorkspaceLease(const HostWorkspaceLease&) = delete;
  HostWorkspaceLease& operator=(const HostWorkspaceLease&) = delete;

  [[nodiscard]] std::span<std::byte> span() const { return span_; }
  // Call it after the run. Otherwise the memory is freed: after an exception its prefix may not be
  // zero.
  void give_back();

 private:
  HostWorkspace workspace_;
  std::span<std::byte> span_;
};

// Frees the workspace that the calling thread keeps.
void release_host_workspace();
// Its bytes.
[[nodiscard]] size_t kept_host_bytes();

}  // namespace pagoda::engine
