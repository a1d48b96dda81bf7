// The launches of a call: which instances serve it, with how many CTAs and which arguments. Host
// code that needs no GPU: the CUDA back end and the emulator execute the plan. It reads lengths
// only where they are in host memory.
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
  int32_t heads = 1;                           // tokens: query heads of a row tile (RowBlock)
  int32_t num_splits = 1, num_whole = 0;       // tokens that CTAs draw: TileGrid's
  int32_t least_split_tiles = 1;               // the same
  int32_t min_rows = 0, max_rows = INT32_MAX;  // query rows of the sequences that it serves
  bool shares_merge = false;                   // latent rows: all CTAs of a row tile merge it
  int32_t side_by_side = 1;                    // latent rows: neighbouring CTAs with the same keys

  // Tokens, and beside them packed rows (kernels/common/mixed_work.hpp).
  [[nodiscard]] bool is_mixed() const { return rows == RowKind::kMixedTokens; }
};

struct LaunchPlan final : core::KernelPlan {
  const Shape* shape = nullptr;
  bool is_batch_invariant = false;
  int32_t num_launches = 0;
  Launch launches[2];
  kernels::SplitWorkspace split;
};

// core::Kernel::fit of a shape.
[[nodiscard]] core::Fit fit(const Shape& shape, const core::Problem& problem,
                            const Options& options, std::string* reason);

// core::Kernel::is_ranked_lower: most decoding is faster without tensor maps.
[[nodiscard]] bool is_ranked_lower(const core::Problem& problem, int32_t num_sms,
                                   const Options& options, std::string* reason);

// For a GPU of `num_sms` multiprocessors.
[[nodiscard]] std::unique_ptr<LaunchPlan> make_plan(const Shape& shape,
                                                    const core::Problem& problem, int32_t num_sms,
                                                    const Options& options);

[[nodiscard]] kernels::LaunchArguments make_arguments(const LaunchPlan& plan, const Launch& launch,
                                                      const core::Problem& problem,
                                                      std::span<std::byte> workspace);

}  // namespace pagoda::mha_sm90
