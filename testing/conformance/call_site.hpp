// CallSite: where the call of a case is made. On the host as it stands; for a device it is told again
// over the device's memory, and its results come back into the case's.
#pragma once

#include <optional>
#include <string>

#include "testing/conformance/problem_data.hpp"
#include "testing/mirror/mirror.hpp"

namespace pagoda::conformance {

class CallSite {
 public:
  // Throws where the back end's device can't be used, std::bad_alloc where it has no room.
  CallSite(const Case& c, ProblemData& data, const std::string& backend);

  [[nodiscard]] const Attention& attention();
  // Outputs full of NaN, guards and gaps included, wherever the call writes them.
  void poison_outputs();
  // Waits for the call, and brings its outputs into the case's data.
  void fetch();
  // What the call must not have done; empty: nothing. After fetch().
  [[nodiscard]] std::string damage();

  // plan() and run() apart, in a workspace of exactly the promised size that is full of NaN but for
  // what must be zero. A run that leaves no zeros there is damage().
  [[nodiscard]] Status run_planned(const Plan& plan);

 private:
  ProblemData& data_;
  core::MemorySpace& space_;
  std::optional<mirror::Mirror> mirror_;  // of a device
  std::string workspace_damage_;
};

// Whether the call of this case promises its longest lengths: most do. Where nothing is promised,
// launches are sized by what the shapes allow.
[[nodiscard]] bool promises_maxima(const Case& c);

}  // namespace pagoda::conformance
