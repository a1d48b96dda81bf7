// Kernel selection walks the rows of a back end in order of preference.
#include "engine/select.hpp"

namespace pagoda::engine {
namespace {

std::string names_of(std::span<const core::Kernel> kernels) {
  std::string text;
  for (const core::Kernel& kernel : kernels)
    text += (text.empty() ? "" : ", ") + std::string(kernel.name);
  return text;
}

}  // namespace

std::string unavailable_reason(const core::Backend& backend) {
  return backend.unavailable_reason == nullptr ? std::string() : backend.unavailable_reason();
}

Result<const core::Backend*> check_options(const Options& options, Device device) {
  const Result<const core::Backend*> found = backend_of(options, device);
  if (!found) return found;
  const core::Backend& backend = **found;
  if (std::string reason = unavailable_reason(backend); !reason.empty()) {
    return Status::unsupported(
        "backend", "backend \"" + std::string(backend.name) + "\" can't run here: " + reason);
  }
  if (backend.check_environment != nullptr) {
    if (Status s = backend.check_environment(); !s) return s;
  }
  if (options.kernel.empty()) return found;
  for (const core::Kernel& kernel : backend.kernels()) {
    if (core::is_wanted(options.kernel, kernel.name)) return found;
  }
  return Status(StatusCode::kNotFound, "kernel",
                "kernel is \"" + options.kernel + "\"; back end " + backend.name + " has " +
                    names_of(backend.kernels()));
}

std::string ranked_lower_reason(const core::Kernel& kernel, const core::Problem& problem) {
  return kernel.ranked_lower_reason == nullptr ? std::string()
                                               : kernel.ranked_lower_reason(kernel, problem);
}

Result<const core::Kernel*> select(const core::Problem& problem, const Options& options) {
  const core::Backend& backend = **backend_of(options, problem.device);
  const core::Kernel* ranked_lower = nullptr;  // the first one that is supported, but ranked lower
  std::string reasons;
  for (const core::Kernel& kernel : backend.kernels()) {
    if (!core::is_wanted(options.kernel, kernel.name)) continue;
    const std::string reason = kernel.unsupported_reason(kernel, problem, options);
    if (!reason.empty()) {
      reasons += std::string(reasons.empty() ? "" : "; ") + kernel.name + ": " + reason;
      continue;
    }
    if (options.kernel == kernel.name || ranked_lower_reason(kernel, problem).empty()) {
      return &kernel;
    }
    if (ranked_lower == nullptr) ranked_lower = &kernel;
  }
  if (ranked_lower != nullptr) return ranked_lower;
  if (reasons.empty()) reasons = "back end " + std::string(backend.name) + " has no kernels";
  return Status::unsupported(options.kernel.empty() ? "backend" : "kernel",
                             "no kernel can serve this call: " + reasons);
}

}  // namespace pagoda::engine
