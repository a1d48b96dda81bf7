// HostWorkspace: memory of the host for run(attention, options), kept per thread between calls.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <span>

#include "core/backend.hpp"

namespace pagoda::engine {

// Grows and never shrinks. Every plan's zeroed bytes end, and its scratch begins, at the same
// place: so no run's scratch is where a later one expects zeros.
class HostWorkspace {
 public:
  [[nodiscard]] std::span<std::byte> at_least(core::WorkspaceSize size);
  [[nodiscard]] size_t size() const { return zeroed_ + scratch_; }

 private:
  struct Free {
    void operator()(std::byte* p) const {
      ::operator delete (p, std::align_val_t{core::kWorkspaceAlignment});
    }
  };
  std::unique_ptr<std::byte, Free> memory_;  // [zeroed_ + scratch_]
  size_t zeroed_ = 0;
  size_t scratch_ = 0;
};

// Takes the thread's workspace while a call uses it: a call from inside another one (a functor, or
// a task that the executor runs while it waits) then gets memory of its own.
class HostWorkspaceLease {
 public:
  explicit HostWorkspaceLease(core::WorkspaceSize size);
  HostWorkspaceLease(const HostWorkspaceLease&) = delete;
  HostWorkspaceLease& operator=(const HostWorkspaceLease&) = delete;

  [[nodiscard]] std::span<std::byte> span() const { return span_; }
  // After the run. Without it the memory is freed: a run that threw may not have left zeros.
  void give_back();

 private:
  HostWorkspace workspace_;
  std::span<std::byte> span_;
};

}  // namespace pagoda::engine
