// Kernel: one row of the registry. Kernel folders declare their rows; back ends collect and rank
// them (core/backend.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "core/problem.hpp"
#include "pagoda/attention.hpp"

namespace pagoda::core {

inline constexpr int64_t kWorkspaceAlignment = 64;

// Whether `name` is the kernel, or among the kernels, that Options::kernel = `wanted` asks for.
[[nodiscard]] constexpr bool is_wanted(std::string_view wanted, std::string_view name) {
  if (wanted.ends_with('*')) return name.starts_with(wanted.substr(0, wanted.size() - 1));
  return wanted.empty() || wanted == name;
}

// What a kernel prepares for one call shape; owned by the Plan. Kernels derive from it.
struct KernelPlan {
  KernelPlan() = default;
  KernelPlan(const KernelPlan&) = delete;
  KernelPlan& operator=(const KernelPlan&) = delete;
  virtual ~KernelPlan() = default;

  int64_t workspace_bytes = 0;
  // The size of the zeroed prefix of the workspace, a multiple of kWorkspaceAlignment. The prefix
  // is zero before the first run; every run that returns resets it to zero.
  int64_t zeroed_workspace_bytes = 0;
  int64_t worker_scratch_bytes = 0;
  int64_t num_work_items = 0;
  int64_t num_split_rows = 0;  // (query row, head) pairs whose keys are split over several items
};

// What a run gets in addition to the call.
struct RunContext {
  Executor* executor = nullptr;  // never null
  Stream stream{};               // of problem.device; host kernels ignore it
};

// How close a kernel comes to serving a problem, from far to near.
enum class Fit : uint8_t {
  kElsewhere,  // it needs another device or processor, or code that this build lacks
  kTypes,      // it is for other element types
  kShapes,     // it is for other head dims
  kFeatures,   // it lacks something else that the call asks for
  kServes,
};

// What Kernel::fit returns for an unserved problem: writes the text of make() to `reason` only
// where the caller asks for it.
template <class MakeText>
Fit unfit(Fit fit, std::string* reason, const MakeText& make) {
  if (reason != nullptr) *reason = make();
  return fit;
}

// Rows may share functions: every function gets its own row, and thereby its `data`, as `self`.
struct Kernel {
  const char* name;     // "cpu.f32.avx512"
  const char* backend;  // "cpu"
  // Whether this kernel serves the problem on this machine, and if not how close it comes. `reason`
  // is null, or receives why not: texts are built for messages only. options.executor is never
  // null, here and in plan().
  Fit (*fit)(const Kernel& self, const Problem& problem, const Options& options,
             std::string* reason);
  Result<std::unique_ptr<KernelPlan>> (*plan)(const Kernel& self, const Problem& problem,
                                              const Options& options);
  // Throws if the launch fails; guarded() turns the exception into a Status.
  void (*run)(const Kernel& self, const KernelPlan& plan, const Problem& problem,
              std::span<std::byte> workspace, const RunContext& context);
  // Whether select() prefers a later row although this one is supported; null = it does not.
  // `reason` as in fit(). Ignored for a kernel that Options::kernel names.
  bool (*is_ranked_lower)(const Kernel& self, const Problem& problem, const Options& options,
                          std::string* reason) = nullptr;
  const void* data = nullptr;  // this row's parameters, read by its functions
  // A slow kernel that serves what no other one does: explain() says why none does.
  bool is_fallback = false;
};

// Why the kernel can't serve the problem on this machine; empty = it can.
[[nodiscard]] inline std::string unsupported_reason(const Kernel& kernel, const Problem& problem,
                                                    const Options& options) {
  std::string reason;
  kernel.fit(kernel, problem, options, &reason);
  return reason;
}

}  // namespace pagoda::core
