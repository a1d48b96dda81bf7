// CallSite: makes the call of a case, on host memory or, for a GPU, on a mirror of it, and copies
// the results back into the case's data.
#pragma once

#include <optional>
#include <string>

#include "testing/conformance/problem_data.hpp"
#include "testing/mirror/mirror.hpp"

namespace pagoda::conformance {

class CallSite {
 public:
  // Throws if the back end's device can't be used; std::bad_alloc if its memory does not suffice.
  CallSite(const Case& c, ProblemData& data, const std::string& backend);

  [[nodiscard]] const Attention& attention();
  // Fills the outputs with NaN, guards and gaps included, in the memory that the call writes.
  void poison_outputs();
  // Synchronises and copies the outputs into the case's data.
  void fetch();
  // Writes outside of the outputs; empty = none. Call it after fetch().
  [[nodiscard]] std::string damage();

  // plan() and run() separately, in a workspace of exactly workspace_bytes(), NaN except for its
  // zeroed prefix. damage() reports a run that does not reset the prefix to zero.
  [[nodiscard]] Status run_planned(const Plan& plan);

 private:
  ProblemData& data_;
  core::MemorySpace& space_;
  std::optional<mirror::Mirror> mirror_;  // GPU only
  std::string workspace_damage_;
};

// Whether the call of this case passes its maximal lengths; most do. Without them launches are
// sized by the shapes.
[[nodiscard]] bool passes_maxima(const Case& c);

}  // namespace pagoda::conformance
