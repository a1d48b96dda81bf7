// explain() and the lists: what there is, and why a call gets what it gets.
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
    if (Status s = engine::check_names(options); !s) return s;

    const Options resolved = engine::with_executor(options);
    std::vector<KernelInfo> infos;
    std::string selected;
    for (const core::Kernel& kernel : engine::registry()) {
      if (options.backend != kernel.backend) continue;
      KernelInfo info;
      info.name = kernel.name;
      info.backend = kernel.backend;
      info.reason = kernel.refuses(*problem, resolved);
      info.can_run = info.reason.empty();
      if (!options.kernel.empty() && options.kernel != info.name) {
        if (info.can_run) info.reason = "passed over: " + options.kernel + " was asked for";
      } else if (info.can_run && selected.empty()) {
        info.is_selected = true;
        selected = info.name;
      } else if (info.can_run) {
        info.reason = "passed over: " + selected + " comes first";
      }
      infos.push_back(std::move(info));
    }
    return infos;
  });
}

std::vector<std::string> kernels(const std::string& backend) {
  std::vector<std::string> names;
  for (const core::Kernel& kernel : engine::registry()) {
    if (backend == kernel.backend) names.emplace_back(kernel.name);
  }
  return names;
}

}  // namespace pagoda
