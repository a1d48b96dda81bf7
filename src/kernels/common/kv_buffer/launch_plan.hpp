// The launches of a call on the kernel of this folder: which variants serve it, with how many CTAs
// and which arguments. Host code that needs no GPU.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "core/kernel.hpp"
#include "core/problem.hpp"
#include "kernels/common/call_arguments.hpp"
#include "kernels/common/kv_buffer/variants.hpp"
#include "kernels/common/launch_arguments.hpp"

namespace pagoda::kernels::kv_buffer {

// What a family has of this kernel.
struct Family {
  // Of each shape. For either kind of rows there is one that serves every call: kRegisters with
  // general scores.
  std::span<const Variant> variants;
  TileConfig (*tile_of)(int depth_qk, int depth_vo, const Variant& variant);

  [[nodiscard]] bool has(const Variant& variant) const {
    return index_of(variant) < variants.size();
  }
  [[nodiscard]] size_t index_of(const Variant& variant) const {
    return static_cast<size_t>(std::ranges::find(variants, variant) - variants.begin());
  }
};

struct Launch {
  size_t variant = 0;
  RowKind rows = RowKind::kPrefill;
  TileConfig tile{};
  int32_t ctas = 0;
  int32_t num_splits = 1;                      // kPrefill: most KV splits of a row tile
  int32_t decode_clusters = 1;                 // kDecode: that the KV tiles are divided among
  int32_t min_tiles = 1;                       // kDecode: DecodeArguments
  DecodeShares shares = DecodeShares::kEven;   // the same
  int32_t most_ctas_per_sm = 0;                // LaunchArguments
  int32_t ctas_per_kv_head = 0;                // AttentionArguments::ctas_per_kv_head
  int32_t min_rows = 0, max_rows = INT32_MAX;  // query rows of the sequences that it serves
};

struct LaunchPlan final : core::KernelPlan {
  bool is_batch_invariant = false;
  int32_t num_launches = 0;
  Launch launches[2];
  SplitWorkspace split;
};

// core::Kernel::fit of a shape.
[[nodiscard]] core::Fit fit(const Shape& shape, const core::Problem& problem,
                            const Options& options, std::string* reason);

// For a GPU of `num_sms` multiprocessors.
[[nodiscard]] std::unique_ptr<LaunchPlan> make_plan(const Shape& shape, const Family& family,
                                                    const core::Problem& problem, int32_t num_sms,
                                                    const Options& options);

[[nodiscard]] LaunchArguments make_arguments(const LaunchPlan& plan, const Launch& launch,
                                             const core::Problem& problem,
                                             std::span<std::byte> workspace);

}  // namespace pagoda::kernels::kv_buffer
