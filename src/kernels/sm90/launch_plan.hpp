// From a call to launches: which instances serve it, with how many CTAs, and their arguments. Host code
// without a machine: the CUDA back end and the emulator launch what it says. Reads no length unless
// it lies on the host.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "core/kernel.hpp"
#include "core/problem.hpp"
#include "kernels/attention/call_arguments.hpp"
#include "kernels/sm90/instances.hpp"

namespace pagoda::sm90 {

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
  kernel::SplitWorkspace split;
};

// Why the shape can't serve the problem; empty = it can.
[[nodiscard]] std::string refuses(const Shape& shape, const core::Problem& problem);

// For a GPU of `num_sms` multiprocessors.
[[nodiscard]] std::unique_ptr<LaunchPlan> make_plan(const Shape& shape,
                                                    const core::Problem& problem, int32_t num_sms,
                                                    bool is_batch_invariant);

// What a launch is told. Maps that the launch does not use have rank 0.
struct LaunchArguments {
  kernel::AttentionArguments arguments;
  arch::TensorMapSpec q, k, v, out;
};
[[nodiscard]] LaunchArguments make_arguments(const LaunchPlan& plan, const Launch& launch,
                                             const core::Problem& problem,
                                             std::span<std::byte> workspace);

// `make_map`: from a specification to the map of the machine at hand.
template <class MakeMap>
kernel::AttentionParams make_params(const LaunchArguments& from, const MakeMap& make_map) {
  kernel::AttentionParams params;
  static_cast<kernel::AttentionArguments&>(params) = from.arguments;
  if (from.q.rank != 0) params.q = make_map(from.q);
  if (from.k.rank != 0) params.k = make_map(from.k);
  if (from.v.rank != 0) params.v = make_map(from.v);
  if (from.out.rank != 0) params.out = make_map(from.out);
  return params;
}

}  // namespace pagoda::sm90
