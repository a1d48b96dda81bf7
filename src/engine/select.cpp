// Selection is a walk down the registry.
#include "engine/select.hpp"

#include <algorithm>

#include "pagoda/backend.hpp"

namespace pagoda::engine {
namespace {

std::string join(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

Status not_found(const char* field, const std::string& value, const std::string& limit) {
  return {StatusCode::kNotFound, field, std::string(field) + " is \"" + value + "\"; " + limit};
}

}  // namespace

Status check_options(const Options& options) {
  if (options.backend == "cpu") {
    if (Status s = check_cpu_isa(); !s) return s;
  }
  bool is_known_backend = false;
  for (const core::Kernel& kernel : registry()) {
    if (options.backend != kernel.backend) continue;
    if (options.kernel.empty() || options.kernel == kernel.name) return {};
    is_known_backend = true;
  }
  if (is_known_backend) {
    return not_found("kernel", options.kernel,
                     "back end " + options.backend + " has " + join(kernels(options.backend)));
  }
  std::vector<std::string> names;
  for (const BackendInfo& backend : backends()) names.push_back(backend.name);
  return not_found("backend", options.backend, "this library has " + join(names));
}

std::string yields(const core::Kernel& kernel, const core::Problem& problem) {
  return kernel.yields == nullptr ? std::string() : kernel.yields(problem);
}

Result<const core::Kernel*> select(const core::Problem& problem, const Options& options) {
  if (Status s = check_options(options); !s) return s;
  const core::Kernel* first = nullptr;  // of those that yield
  std::string reasons;
  for (const core::Kernel& kernel : registry()) {
    if (options.backend != kernel.backend) continue;
    if (!options.kernel.empty() && options.kernel != kernel.name) continue;
    const std::string reason = kernel.refuses(problem, options);
    if (!reason.empty()) {
      reasons += std::string(reasons.empty() ? "" : "; ") + kernel.name + ": " + reason;
      continue;
    }
    if (!options.kernel.empty() || yields(kernel, problem).empty()) return &kernel;
    if (first == nullptr) first = &kernel;
  }
  if (first != nullptr) return first;
  return Status::unsupported(options.kernel.empty() ? "backend" : "kernel",
                             "no kernel can serve this call: " + reasons);
}

}  // namespace pagoda::engine
