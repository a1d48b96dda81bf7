// explain() and kernels(): the kernels of a back end, and the engine's decision on each.
#include "engine/guard.hpp"
#include "engine/plan.hpp"
#include "engine/select.hpp"
#include "engine/validate.hpp"
#include "pagoda/backend.hpp"

namespace pagoda {

Result<std::vector<KernelInfo>> explain(const Attention& attention, const Options& options) {
  return engine::guarded([&]() -> Result<std::vector<KernelInfo>> {
    const Result<core::Problem> problem = engine::validate(attention, options);
    if (!problem) return problem.status();

    const Options resolved = engine::with_executor(options);
    const Result<const core::Kernel*> selected = engine::select(*problem, resolved);
    std::vector<KernelInfo> infos;
    const core::Backend& backend = **engine::backend_of(options, problem->device);
    for (const core::Kernel& kernel : backend.kernels()) {
      KernelInfo info;
      info.name = kernel.name;
      info.backend = kernel.backend;
      info.reason = core::unsupported_reason(kernel, *problem, resolved);
      info.can_run = info.reason.empty();
      info.is_selected = selected && &kernel == *selected;
      if (info.can_run && !info.is_selected) {
        const std::string ranked_lower = engine::ranked_lower_reason(kernel, *problem);
        info.reason = "not selected: ";
        if (!core::is_wanted(options.kernel, kernel.name)) {
          info.reason += "the call requests " + options.kernel;
        } else {
          info.reason += ranked_lower.empty() ? std::string((*selected)->name) + " is ranked higher"
                                              : ranked_lower;
        }
      }
      infos.push_back(std::move(info));
    }
    return infos;
  });
}

std::vector<std::string> kernels(const std::string& backend) {
  std::vector<std::string> names;
  const core::Backend* found = engine::find_backend(backend);
  if (found == nullptr) return names;
  for (const core::Kernel& kernel : found->kernels()) names.emplace_back(kernel.name);
  return names;
}

}  // namespace pagoda
