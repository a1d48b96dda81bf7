// From a call to launches: with how many CTAs, and their arguments. Host code without a machine: the
// CUDA back end and the emulator launch what it says. Reads no length unless it lies on the host.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "core/kernel.hpp"
#include "core/problem.hpp"
#include "kernels/attention/call_arguments.hpp"
#include "kernels/sm100/instances.hpp"

namespace pagoda::sm100 {

struct Launch {
  kernel::Schedule schedule = kernel::Schedule::kQueue;
  int32_t ctas = 0;
  int32_t num_splits = 1;                      // not of kShares
  int32_t min_rows = 0, max_rows = INT32_MAX;  // of the sequences that it serves
};

struct LaunchPlan final : core::KernelPlan {
  const Shape* shape = nullptr;
  ScoreClass scores = ScoreClass::kPlain;
  bool is_gathered = false;
  bool has_whole_units = false;
  int32_t num_launches = 0;
  Launch launches[2];
  kernel::SplitWorkspace split;
};

// Why the shape can't serve the problem; empty = it can.
[[nodiscard]] std::string refuses(const Shape& shape, const core::Problem& problem);

// Why another shape that can is faster on a GPU of so many multiprocessors; empty = none is.
[[nodiscard]] std::string yields(const Shape& shape, const core::Problem& problem, int32_t num_sms);

struct PlanOptions {
  int32_t num_sms = 148;  // of a B200
  bool is_batch_invariant = false;
  // Of the tiles of long sequences, and then of all; for tests. Pairs: kPersistent or kTransient.
  std::optional<kernel::Schedule> schedule{};
};
[[nodiscard]] std::unique_ptr<LaunchPlan> make_plan(const Shape& shape,
                                                    const core::Problem& problem,
                                                    const PlanOptions& options);

// What a launch is told.
struct LaunchArguments {
  kernel::AttentionArguments arguments;
  arch::TensorMapSpec q, k, v, out;  // rank 0 where not used, but for q
};
[[nodiscard]] LaunchArguments make_arguments(const LaunchPlan& plan, const Launch& launch,
                                             const core::Problem& problem,
                                             std::span<std::byte> workspace);

// `make_map`: from a specification to the map of the machine at hand.
template <class MakeMap>
kernel::AttentionParams make_params(const LaunchArguments& from, const MakeMap& make_map) {
  kernel::AttentionParams params;
  static_cast<kernel::AttentionArguments&>(params) = from.arguments;
  params.q = make_map(from.q);
  if (from.k.rank != 0) params.k = make_map(from.k);
  if (from.v.rank != 0) params.v = make_map(from.v);
  if (from.out.rank != 0) params.out = make_map(from.out);
  return params;
}

}  // namespace pagoda::sm100
