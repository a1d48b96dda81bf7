// The CUDA back end as core::Backend. It makes the device of a call current before a kernel's
// functions run.
#include <vector>

#include "arch/ptx/device.hpp"
#include "backends/cuda/backend.hpp"
#include "backends/cuda/devices.hpp"
#include "backends/cuda/kept_workspace.hpp"
#include "backends/cuda/kernels.hpp"
#include "backends/cuda/memory_space.hpp"
#include "backends/cuda/states.hpp"

namespace pagoda::cuda {
namespace {

// A row that wraps one of kernels(), which is its `data`.
const core::Kernel& inner(const core::Kernel& row) {
  return *static_cast<const core::Kernel*>(row.data);
}

core::Kernel guard(const core::Kernel& kernel) {
  return {
      .name = kernel.name,
      .backend = "cuda",
      .unsupported_reason =
          [](const core::Kernel& self, const core::Problem& problem, const Options& options) {
            std::string reason = unsupported_reason(problem.device);
            if (!reason.empty()) return reason;
            const arch::DeviceGuard device(problem.device.index);
            return inner(self).unsupported_reason(inner(self), problem, options);
          },
      .plan =
          [](const core::Kernel& self, const core::Problem& problem, const Options& options) {
            const arch::DeviceGuard device(problem.device.index);
            return inner(self).plan(inner(self), problem, options);
          },
      .run =
          [](const core::Kernel& self, const core::KernelPlan& plan, const core::Problem& problem,
             std::span<std::byte> workspace, const core::RunContext& context) {
            const arch::DeviceGuard device(problem.device.index);
            inner(self).run(inner(self), plan, problem, workspace, context);
          },
      .ranked_lower_reason =
          [](const core::Kernel& self, const core::Problem& problem) {
            return inner(self).ranked_lower_reason == nullptr
                       ? std::string()
                       : inner(self).ranked_lower_reason(inner(self), problem);
          },
      .data = &kernel};
}

std::span<const core::Kernel> guarded_kernels() {
  static const std::vector<core::Kernel> kRows = [] {
    std::vector<core::Kernel> rows;
    for (const core::Kernel& kernel : kernels()) rows.push_back(guard(kernel));
    return rows;
  }();
  return kRows;
}

}  // namespace

const core::Backend& backend() {
  static constexpr core::Backend kBackend{.name = "cuda",
                                          .memory = DeviceType::kCuda,
                                          .kernels = guarded_kernels,
                                          .description = description,
                                          .unavailable_reason = unavailable_reason,
                                          .append_kv = append_kv,
                                          .merge_states = merge_states,
                                          .misplaced = misplaced,
                                          .keep_workspace = keep_workspace,
                                          .memory_space = memory_space};
  return kBackend;
}

}  // namespace pagoda::cuda
