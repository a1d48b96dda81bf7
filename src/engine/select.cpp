// Kernel selection walks the rows of a back end in order of preference.
#include "engine/select.hpp"

#include <vector>

namespace pagoda::engine {
namespace {

std::string names_of(std::span<const core::Kernel> kernels) {
  std::string text;
  for (const core::Kernel& kernel : kernels)
    text += (text.empty() ? "" : ", ") + std::string(kernel.name);
  return text;
}

// The kernels that do not serve a call, of which the message names the one that comes closest; of
// several, the last: rows are ranked, and the last is the most general.
struct Unserved {
  const core::Kernel* closest = nullptr;
  core::Fit fit = core::Fit::kElsewhere;
  int32_t count = 0;

  void add(const core::Kernel& kernel, core::Fit its_fit) {
    ++count;
    if (closest != nullptr && its_fit < fit) return;
    closest = &kernel;
    fit = its_fit;
  }
  [[nodiscard]] std::string reason(const core::Problem& problem, const Options& options) const {
    std::string text =
        std::string(closest->name) + ": " + core::unsupported_reason(*closest, problem, options);
    if (count > 1) {
      text += " (the closest of " + std::to_string(count) + " kernels; explain() lists all)";
    }
    return text;
  }
};

// Why a back end has no candidate that options.kernel asks for.
std::string none_reason(const core::Backend& backend, const Options& options) {
  if (backend.kernels().empty()) {
    return "back end " + std::string(backend.name) + " has no kernels";
  }
  return "\"" + options.kernel + "\" is compiled for a functor that the call does not name";
}

// Changes of element types with which a call may get a faster kernel.
struct TypeChange {
  const char* text;
  DType q, kv;  // new types
};
std::vector<TypeChange> type_changes(const core::Problem& p) {
  if (p.q.dtype == DType::kF32) return {{"Q, K and V in bf16", DType::kBF16, DType::kBF16}};
  if (p.q.dtype == DType::kF8E4M3) return {{"Q in bf16", DType::kBF16, p.k.dtype}};
  return {};
}

constexpr int32_t kMostKVSplits = 128;  // work tiles times splits must stay below 2^31

Status check_schedule(const Options& options) {
  if (options.schedule > Schedule::kStreamK) {
    return Status::invalid("schedule", std::to_string(static_cast<int>(options.schedule)),
                           "must be one of Schedule's values");
  }
  const int32_t splits = options.num_kv_splits;
  if (splits < 0 || splits > kMostKVSplits) {
    return Status::invalid("num_kv_splits", std::to_string(splits),
                           "must be in [0, " + std::to_string(kMostKVSplits) + "]");
  }
  if (options.schedule == Schedule::kStreamK && splits > 1) {
    return Status::invalid("num_kv_splits", std::to_string(splits),
                           "must be 0 or 1 with schedule stream-k, which splits by equal shares");
  }
  return {};
}

}  // namespace

std::string unavailable_reason(const core::Backend& backend) {
  return backend.unavailable_reason == nullptr ? std::string() : backend.unavailable_reason();
}

Result<const core::Backend*> check_options(const Options& options, Device device) {
  Result<const core::Backend*> found = backend_of(options, device);
  if (!found) return found;
  const core::Backend& backend = **found;
  if (std::string reason = unavailable_reason(backend); !reason.empty()) {
    return Status::unsupported(
        "backend", "backend \"" + std::string(backend.name) + "\" can't run here: " + reason);
  }
  if (backend.check_environment != nullptr) {
    if (Status s = backend.check_environment(); !s) return s;
  }
  if (Status s = check_schedule(options); !s) return s;
  if (options.kernel.empty()) return found;
  for (const core::Kernel& kernel : backend.kernels()) {
    if (core::is_wanted(options.kernel, kernel.name)) return found;
  }
  for (const core::Kernel* kernel : functor_kernels(backend.name, nullptr)) {
    if (core::is_wanted(options.kernel, kernel->name)) return found;
  }
  return Status(StatusCode::kNotFound, "kernel",
                "kernel is \"" + options.kernel + "\"; back end " + backend.name + " has " +
                    names_of(backend.kernels()));
}

bool is_ranked_lower(const core::Kernel& kernel, const core::Problem& problem,
                     const Options& options, std::string* reason) {
  return kernel.is_ranked_lower != nullptr &&
         kernel.is_ranked_lower(kernel, problem, options, reason);
}

Result<const core::Kernel*> select(const core::Problem& problem, const Options& options) {
  const core::Backend& backend = **backend_of(options, problem.device);
  const core::Kernel* ranked_lower = nullptr;  // the first one that is supported, but ranked lower
  const core::Kernel* selected = nullptr;
  Unserved unserved;
  visit_candidates(backend, problem, [&](const core::Kernel& kernel) {
    if (!core::is_wanted(options.kernel, kernel.name)) return false;
    const core::Fit fit = kernel.fit(kernel, problem, options, nullptr);
    if (fit != core::Fit::kServes) {
      unserved.add(kernel, fit);
    } else if (options.kernel == kernel.name ||
               !is_ranked_lower(kernel, problem, options, nullptr)) {
      selected = &kernel;
    } else if (ranked_lower == nullptr) {
      ranked_lower = &kernel;
    }
    return selected != nullptr;
  });
  if (selected != nullptr) return selected;
  if (ranked_lower != nullptr) return ranked_lower;
  return Status::unsupported(options.kernel.empty() ? "backend" : "kernel",
                             "no kernel can serve this call: " +
                                 (unserved.count == 0 ? none_reason(backend, options)
                                                      : unserved.reason(problem, options)));
}

std::string fallback_reason(const core::Problem& problem, const Options& options) {
  const core::Backend& backend = **backend_of(options, problem.device);
  Unserved unserved;
  for (const core::Kernel& kernel : backend.kernels()) {
    if (kernel.is_fallback) continue;
    const core::Fit fit = kernel.fit(kernel, problem, options, nullptr);
    if (fit == core::Fit::kServes) {
      return std::string(kernel.name) + " is faster; the call requests " + options.kernel;
    }
    unserved.add(kernel, fit);
  }
  if (unserved.count == 0) return {};
  std::string text =
      "slow, but no faster kernel serves this call: " + std::string(unserved.closest->name) + ": " +
      core::unsupported_reason(*unserved.closest, problem, options);
  Options any = options;
  any.kernel.clear();
  for (const TypeChange& change : type_changes(problem)) {
    core::Problem changed = problem;
    changed.q.dtype = change.q;
    changed.k.dtype = changed.v.dtype = change.kv;
    const Result<const core::Kernel*> faster = select(changed, any);
    if (faster && !(*faster)->is_fallback) {
      text += std::string("; with ") + change.text + ", " + (*faster)->name + " does";
    }
  }
  return text;
}

}  // namespace pagoda::engine
