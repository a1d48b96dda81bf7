// From a call to launches: with how many CTAs, and their arguments. Host code without a machine: the
// CUDA back end and the emulator launch what it says. Reads no length unless it lies on the host.
#pragma once

#include <memory>
#include <optional>
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
  int32_t num_splits = 1;                      // not of kStreamK
  int32_t min_rows = 0, max_rows = INT32_MAX;  // of the sequences that it serves
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

// Why the shape can't serve the problem; empty = it can.
[[nodiscard]] std::string unsupported_reason(const Shape& shape, const core::Problem& problem);

// Why another shape that can is faster on a GPU of so many multiprocessors; empty = none is.
[[nodiscard]] std::string ranked_lower_reason(const Shape& shape, const core::Problem& problem,
                                              int32_t num_sms);

struct PlanOptions {
  int32_t num_sms = 148;  // of a B200
  bool is_batch_invariant = false;
  // Of the tiles of long sequences, and then of all; for tests. Pairs: kPersistent or kTransient.
  std::optional<kernels::Schedule> schedule{};
};
[[nodiscard]] std::unique_ptr<LaunchPlan> make_plan(const Shape& shape,
                                                    const core::Problem& problem,
                                                    const PlanOptions& options);

[[nodiscard]] kernels::LaunchArguments make_arguments(const LaunchPlan& plan, const Launch& launch,
                                                      const core::Problem& problem,
                                                      std::span<std::byte> workspace);

}  // namespace pagoda::mha_sm100
