// From a call to a launch: with how many CTAs, and its arguments. Host code without a machine: the CUDA back
// end and the emulator launch what it says. Reads no length.
#pragma once

#include <memory>
#include <string>

#include "kernels/sm100/launch_plan.hpp"
#include "kernels/sm100_deep/instances.hpp"

namespace pagoda::sm100_deep {

struct LaunchPlan final : core::KernelPlan {
  const Shape* shape = nullptr;
  ScoreClass scores = ScoreClass::kPlain;
  kernel::Schedule schedule = kernel::Schedule::kPersistent;
  int32_t ctas = 0;  // 0: nothing to write
};

// Why the shape can't serve the problem; empty = it can.
[[nodiscard]] std::string refuses(const Shape& shape, const core::Problem& problem);

struct PlanOptions {
  int32_t num_sms = 148;  // of a B200
  kernel::Schedule schedule = kernel::Schedule::kPersistent;
};
[[nodiscard]] std::unique_ptr<LaunchPlan> make_plan(const Shape& shape,
                                                    const core::Problem& problem,
                                                    const PlanOptions& options);

[[nodiscard]] sm100::LaunchArguments make_arguments(const LaunchPlan& plan,
                                                    const core::Problem& problem);

}  // namespace pagoda::sm100_deep
