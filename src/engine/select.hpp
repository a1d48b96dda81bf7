// Kernel selection: the first supported row of the back end that is not ranked lower, among
// those that Options::kernel names.
#pragma once

#include "engine/functors.hpp"
#include "engine/registry.hpp"

namespace pagoda::engine {

// Why a back end can't run here; empty = it can.
[[nodiscard]] std::string unavailable_reason(const core::Backend& backend);

// The back end of a call whose first tensor is on `device`. kNotFound: no back end, or no kernel of
// it, has the given name. kUnsupported: the back end can't run here. kInvalidArgument: PAGODA_ISA
// names no level.
[[nodiscard]] Result<const core::Backend*> check_options(const Options& options, Device device);

// Visits the rows among which select() chooses, until visit() returns true: those of the problem's
// functor, then those of the back end, of which the CPU's serve every functor.
template <class Visit>
void visit_candidates(const core::Backend& backend, const core::Problem& problem,
                      const Visit& visit) {
  if (problem.functor.type != nullptr) {
    for (const core::Kernel* kernel : functor_kernels(backend.name, problem.functor.type)) {
      if (visit(*kernel)) return;
    }
  }
  for (const core::Kernel& kernel : backend.kernels()) {
    if (visit(kernel)) return;
  }
}

// Whether a later kernel is preferred to this one; `reason` as in core::Kernel::fit.
[[nodiscard]] bool is_ranked_lower(const core::Kernel& kernel, const core::Problem& problem,
                                   const Options& options, std::string* reason);

// `options` must have passed check_options(), which validate() calls. kUnsupported: no kernel, or
// not the requested one, supports the problem; the message has the reason of the closest one.
[[nodiscard]] Result<const core::Kernel*> select(const core::Problem& problem,
                                                 const Options& options);

// Why a kernel with is_fallback was selected: what keeps the closest of the others from serving the
// call, and the change with which one of them would; empty where the back end has no others.
[[nodiscard]] std::string fallback_reason(const core::Problem& problem, const Options& options);

}  // namespace pagoda::engine
