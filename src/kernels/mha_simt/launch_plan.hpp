// The launch of a call on the SIMT kernel: which calls it serves, its CTAs and arguments. Host code
// that needs no GPU.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "core/kernel.hpp"
#include "core/problem.hpp"
#include "kernels/common/call_arguments.hpp"
#include "kernels/common/launch_arguments.hpp"
#include "kernels/common/work_tile.hpp"
#include "kernels/mha_simt/instances.hpp"

namespace pagoda::mha_simt {

struct LaunchPlan final : core::KernelPlan {
  bool is_batch_invariant = false;
  int32_t ctas = 0;              // 0: nothing to launch
  kernels::PackedRows packed{};  // of a work tile
  int32_t num_splits = 1;        // most KV splits of a row tile
  kernels::SplitWorkspace split;
};

// core::Kernel::fit of a shape.
[[nodiscard]] core::Fit fit(const Shape& shape, const core::Problem& problem,
                            const Options& options, std::string* reason);

// For a GPU of `num_sms` multiprocessors.
[[nodiscard]] std::unique_ptr<LaunchPlan> make_plan(const Shape& shape,
                                                    const core::Problem& problem, int32_t num_sms,
                                                    const Options& options);

[[nodiscard]] kernels::LaunchArguments make_arguments(const LaunchPlan& plan,
                                                      const core::Problem& problem,
                                                      std::span<std::byte> workspace);

}  // namespace pagoda::mha_simt
