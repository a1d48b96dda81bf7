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
    engine::visit_candidates(backend, *problem, [&](const core::Kernel& kernel) {
      KernelInfo info;
      info.name = kernel.name;
      info.backend = kernel.backend;
      info.reason = core::unsupported_reason(kernel, *problem, resolved);
      info.can_run = info.reason.empty();
      info.is_selected = selected && &kernel == *selected;
      if (info.is_selected && kernel.is_fallback) {
        info.reason = engine::fallback_reason(*problem, resolved);
      }
      if (info.can_run && !info.is_selected) {
        std::string why;
        if (!core::is_wanted(options.kernel, kernel.name)) {
          why = "the call requests " + options.kernel;
        } else if (!engine::is_ranked_lower(kernel, *problem, options, &why)) {
          why = std::string((*selected)->name) + " is ranked higher";
        }
        info.reason = "not selected: " + why;
      }
      infos.push_back(std::move(info));
      return false;
    });
    return infos;
  });
}

std::vector<std::string> kernels(const std::string& backend) {
  std::vector<std::string> names;
  const core::Backend* found = engine::find_backend(backend);
  if (found == nullptr) return names;
  for (const core::Kernel& kernel : found->kernels()) names.emplace_back(kernel.name);
  for (const core::Kernel* kernel : engine::functor_kernels(backend, nullptr)) {
    names.emplace_back(kernel->name);
  }
  return names;
}

}  // namespace pagoda
