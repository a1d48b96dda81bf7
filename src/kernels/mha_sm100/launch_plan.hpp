// Plans the launches of a call: their grids and arguments. Host code that the CUDA back end and the
// emulator share. It reads sequence lengths only where they are in host memory.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "core/kernel.hpp"
#include "core/problem.hpp"
#include "kernels/common/launch_arguments.hpp"
#include "kernels/common/sm100/launches.hpp"
#include "kernels/mha_sm100/instances.hpp"

namespace pagoda::mha_sm100 {

using kernels::sm100::Launch;

struct LaunchPlan final : kernels::sm100::LaunchPlan {
  const Shape* shape = nullptr;
};

// core::Kernel::fit of a shape.
[[nodiscard]] core::Fit fit(const Shape& shape, const core::Problem& problem,
                            const Options& options, std::string* reason);

// Whether the shape ranks below another that supports the problem, on a GPU with `num_sms`
// multiprocessors; `reason` as in fit().
[[nodiscard]] bool is_ranked_lower(const Shape& shape, const core::Problem& problem,
                                   int32_t num_sms, const Options& options, std::string* reason);

// For a GPU of `num_sms` multiprocessors.
[[nodiscard]] std::unique_ptr<LaunchPlan> make_plan(const Shape& shape,
                                                    const core::Problem& problem, int32_t num_sms,
                                                    const Options& options);

[[nodiscard]] kernels::LaunchArguments make_arguments(const LaunchPlan& plan, const Launch& launch,
                                                      const core::Problem& problem,
                                                      std::span<std::byte> workspace);

}  // namespace pagoda::mha_sm100
