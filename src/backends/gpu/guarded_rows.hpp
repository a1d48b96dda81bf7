// Rows of the registry that make the device of a call current before a kernel runs. fit() and
// plan() call no function of the runtime: a call asks dozens of rows.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/kernel.hpp"

namespace pagoda::gpu {

// `Api`: Guard(index) and unsupported_reason(device), as in memory_space.hpp; kBackend, its name.
template <class Api>
class GuardedRows {
 public:
  // Rows that wrap `kernels`, which live as long.
  explicit GuardedRows(std::span<const core::Kernel> kernels) {
    for (const core::Kernel& kernel : kernels) rows_.push_back(guard(kernel));
  }
  [[nodiscard]] std::span<const core::Kernel> rows() const { return rows_; }

 private:
  using Guard = typename Api::Guard;

  // A row's `data` is the kernel that it wraps.
  static const core::Kernel& inner(const core::Kernel& row) {
    return *static_cast<const core::Kernel*>(row.data);
  }

  static core::Kernel guard(const core::Kernel& kernel) {
    return {
        .name = kernel.name,
        .backend = Api::kBackend,
        .fit =
            [](const core::Kernel& self, const core::Problem& problem, const Options& options,
               std::string* reason) {
              const std::string missing = Api::unsupported_reason(problem.device);
              if (!missing.empty()) {
                return core::unfit(core::Fit::kElsewhere, reason, [&] { return missing; });
              }
              return inner(self).fit(inner(self), problem, options, reason);
            },
        .plan =
            [](const core::Kernel& self, const core::Problem& problem, const Options& options) {
              return inner(self).plan(inner(self), problem, options);
            },
        .run =
            [](const core::Kernel& self, const core::KernelPlan& plan, const core::Problem& problem,
               std::span<std::byte> workspace, const core::RunContext& context) {
              const Guard device(problem.device.index);
              inner(self).run(inner(self), plan, problem, workspace, context);
            },
        .is_ranked_lower =
            [](const core::Kernel& self, const core::Problem& problem, const Options& options,
               std::string* reason) {
              return inner(self).is_ranked_lower != nullptr &&
                     inner(self).is_ranked_lower(inner(self), problem, options, reason);
            },
        .data = &kernel,
        .is_fallback = kernel.is_fallback};
  }

  std::vector<core::Kernel> rows_;
};

}  // namespace pagoda::gpu
