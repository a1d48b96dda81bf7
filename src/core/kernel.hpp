// Kernel: one row of the registry. Kernels declare their rows next to their code; the engine
// gathers and ranks them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "core/problem.hpp"
#include "pagoda/attention.hpp"

namespace pagoda::core {

// What a kernel prepares for one shape; owned by the Plan. Kernels derive their own.
struct KernelPlan {
  KernelPlan() = default;
  KernelPlan(const KernelPlan&) = delete;
  KernelPlan& operator=(const KernelPlan&) = delete;
  virtual ~KernelPlan() = default;

  int64_t workspace_bytes = 0;
  int64_t worker_scratch_bytes = 0;
  int64_t num_work_items = 0;
  int64_t num_split_rows = 0;  // (query row, head) pairs whose keys are split over several items
};

struct Kernel {
  const char* name;     // "cpu.f32.avx512"
  const char* backend;  // "cpu"
  // Why this kernel can't serve the problem on this machine; empty = it can. Here and in plan(),
  // options.executor is never null.
  std::string (*refuses)(const Problem& problem, const Options& options);
  Result<std::unique_ptr<KernelPlan>> (*plan)(const Problem& problem, const Options& options);
  void (*run)(const KernelPlan& plan, const Problem& problem, std::span<std::byte> workspace,
              Executor& executor);
  // Why a later row is faster on this machine, though this one could serve; empty or null = none
  // is. A kernel asked for by name is not asked.
  std::string (*yields)(const Problem& problem) = nullptr;
};

}  // namespace pagoda::core
