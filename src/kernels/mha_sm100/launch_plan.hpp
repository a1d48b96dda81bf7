// Plans the launches of a call: their grids and arguments. Host code that the CUDA back end and the
// emulator share. It reads sequence lengths only where they are in host memory.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "core/kernel.hpp"
#include "core/problem.hpp"
#include "kernels/common/call_arguments.hpp"
#include "kernels/common/launch_arguments.hpp"
#include "kernels/mha_sm100/instances.hpp"

namespace pagoda::mha_sm100 {

struct Launch {
  kernels::Schedule schedule = kernels::Schedule::kQueue;
  int32_t ctas = 0;
  int32_t num_splits = 1;                      // KV splits; unused with kStreamK
  int32_t min_rows = 0, max_rows = INT32_MAX;  // sequences with so many query rows are served
};

struct LaunchPlan final : core::KernelPlan {
  const Shape* shape = nullptr;
  ScoreClass scores = ScoreClass::kPlain;
  bool is_gathered = false;
  bool is_batch_invariant = false;
  int32_t num_launches = 0;
  Launch launches[2];
  kernels::SplitWorkspace split;
};

// core::Kernel::fit of a shape.
[[nodiscard]] core::Fit fit(const Shape& shape, const core::Problem& problem,
                            const Options& options, std::string* reason);

// Why the shape ranks below another that supports the problem, on a GPU with `num_sms`
// multiprocessors; empty = it does not.
[[nodiscard]] std::string ranked_lower_reason(const Shape& shape, const core::Problem& problem,
                                              int32_t num_sms);

// For a GPU of `num_sms` multiprocessors.
[[nodiscard]] std::unique_ptr<LaunchPlan> make_plan(const Shape& shape,
                                                    const core::Problem& problem, int32_t num_sms,
                                                    const Options& options);

[[nodiscard]] kernels::LaunchArguments make_arguments(const LaunchPlan& plan, const Launch& launch,
                                                      const core::Problem& problem,
                                                      std::span<std::byte> workspace);

}  // namespace pagoda::mha_sm100
