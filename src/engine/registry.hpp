// The table of all kernels, one row each, in the order of preference.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "core/problem.hpp"
#include "pagoda/attention.hpp"

namespace pagoda::engine {

// What a kernel prepares for one shape; owned by the Plan. Kernels derive their own.
struct KernelPlan {
  virtual ~KernelPlan() = default;
  int64_t workspace_bytes = 0;
  int64_t worker_scratch_bytes = 0;
  int64_t num_work_items = 0;
  int64_t num_split_rows = 0;
};

struct Kernel {
  const char* name;     // "cpu.f32.avx512"
  const char* backend;  // "cpu"
  // Why this kernel can't serve the problem on this machine; empty = it can.
  std::string (*refuses)(const core::Problem& problem, const Options& options);
  Result<std::unique_ptr<KernelPlan>> (*plan)(const core::Problem& problem, const Options& options);
  void (*run)(const KernelPlan& plan, const core::Problem& problem, std::span<std::byte> workspace,
              Executor& executor);
};

// Best first.
[[nodiscard]] std::span<const Kernel> registry();

}  // namespace pagoda::engine
