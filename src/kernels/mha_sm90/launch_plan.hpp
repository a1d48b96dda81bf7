// From a call to launches: which instances serve it, with how many CTAs, and their arguments. Host code
// without a machine: the CUDA back end and the emulator launch what it says. Reads no length unless
// it lies on the host.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "core/kernel.hpp"
#include "core/problem.hpp"
#include "kernels/common/call_arguments.hpp"
#include "kernels/common/launch_arguments.hpp"
#include "kernels/mha_sm90/instances.hpp"

namespace pagoda::mha_sm90 {

struct Launch {
  RowKind rows = RowKind::kTokens;
  ScoreClass scores = ScoreClass::kPlain;
  LoadKind load = LoadKind::kTma;
  int32_t ctas = 0;
  int32_t num_splits = 1;                      // tiles of tokens
  int32_t min_rows = 0, max_rows = INT32_MAX;  // of the sequences that it serves
};

struct LaunchPlan final : core::KernelPlan {
  const Shape* shape = nullptr;
  bool has_whole_units = false;
  int32_t num_launches = 0;
  Launch launches[2];
  kernels::SplitWorkspace split;
};

// Why the shape can't serve the problem; empty = it can.
[[nodiscard]] std::string unsupported_reason(const Shape& shape, const core::Problem& problem);

// For a GPU of `num_sms` multiprocessors.
[[nodiscard]] std::unique_ptr<LaunchPlan> make_plan(const Shape& shape,
                                                    const core::Problem& problem, int32_t num_sms,
                                                    bool is_batch_invariant);

[[nodiscard]] kernels::LaunchArguments make_arguments(const LaunchPlan& plan, const Launch& launch,
                                                      const core::Problem& problem,
                                                      std::span<std::byte> workspace);

}  // namespace pagoda::mha_sm90
