// Plans the launch of a call: its grid and arguments. Host code that the CUDA back end and the
// emulator share. It reads no sequence length.
#pragma once

#include <memory>
#include <string>

#include "core/kernel.hpp"
#include "core/problem.hpp"
#include "kernels/common/call_arguments.hpp"
#include "kernels/common/launch_arguments.hpp"
#include "kernels/mha_sm100_d512/instances.hpp"

namespace pagoda::mha_sm100_d512 {

struct LaunchPlan final : core::KernelPlan {
  const Shape* shape = nullptr;
  ScoreClass scores = ScoreClass::kPlain;
  kernels::Schedule schedule = kernels::Schedule::kPersistent;
  int32_t ctas = 0;  // 0: nothing to write
};

// core::Kernel::fit of a shape.
[[nodiscard]] core::Fit fit(const Shape& shape, const core::Problem& problem,
                            const Options& options, std::string* reason);

// For a GPU of `num_sms` multiprocessors.
[[nodiscard]] std::unique_ptr<LaunchPlan> make_plan(const Shape& shape,
                                                    const core::Problem& problem, int32_t num_sms,
                                                    const Options& options);

[[nodiscard]] kernels::LaunchArguments make_arguments(const LaunchPlan& plan,
                                                      const core::Problem& problem);

}  // namespace pagoda::mha_sm100_d512
