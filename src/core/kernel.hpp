// Kernel: one row of the registry. Kernels declare their rows next to their code; back ends gather
// and rank them (core/backend.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "core/problem.hpp"
#include "pagoda/attention.hpp"

namespace pagoda::core {

inline constexpr int64_t kWorkspaceAlignment = 64;

// What a kernel prepares for one shape; owned by the Plan. Kernels derive their own.
struct KernelPlan {
  KernelPlan() = default;
  KernelPlan(const KernelPlan&) = delete;
  KernelPlan& operator=(const KernelPlan&) = delete;
  virtual ~KernelPlan() = default;

  int64_t workspace_bytes = 0;
  // The first bytes of the workspace, a multiple of kWorkspaceAlignment: zero before the first run
  // with it, and left zero by every run that returns.
  int64_t zeroed_workspace_bytes = 0;
  int64_t worker_scratch_bytes = 0;
  int64_t num_work_items = 0;
  int64_t num_split_rows = 0;  // (query row, head) pairs whose keys are split over several items
};

// What a run gets besides the call.
struct RunContext {
  Executor* executor = nullptr;  // never null
  Stream stream{};               // of problem.device; the host's kernels ignore it
};

// Rows of one table may share their functions: each gets its own row, and so its `data`, first.
struct Kernel {
  const char* name;     // "cpu.f32.avx512"
  const char* backend;  // "cpu"
  // Why this kernel can't serve the problem on this machine; empty = it can. Here and in plan(),
  // options.executor is never null.
  std::string (*unsupported_reason)(const Kernel& self, const Problem& problem,
                                    const Options& options);
  Result<std::unique_ptr<KernelPlan>> (*plan)(const Kernel& self, const Problem& problem,
                                              const Options& options);
  // Throws where it can't be started: guarded() makes a Status of that.
  void (*run)(const Kernel& self, const KernelPlan& plan, const Problem& problem,
              std::span<std::byte> workspace, const RunContext& context);
  // Why a later row is faster on this machine, though this one could serve; empty or null = none
  // is. A kernel asked for by name is not asked.
  std::string (*ranked_lower_reason)(const Kernel& self, const Problem& problem) = nullptr;
  const void* data = nullptr;  // the row's own: what its functions share with no other row
};

}  // namespace pagoda::core
