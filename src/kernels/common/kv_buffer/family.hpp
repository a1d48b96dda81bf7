// FamilyOf: what kernels::KernelTable asks of a family whose kernels are those of this folder.
#pragma once

#include <memory>
#include <string>

#include "kernels/common/kv_buffer/launch_plan.hpp"

namespace pagoda::kernels::kv_buffer {

// `Chip`: struct with kShapes, kVariants and tile_of.
template <class Chip>
struct FamilyOf {
  using Shape = kv_buffer::Shape;
  using Plan = LaunchPlan;
  static constexpr auto& kShapes = Chip::kShapes;
  static constexpr size_t kNumVariants = Chip::kVariants.size();
  static constexpr int32_t kFewestSms = 3;

  static std::string unsupported_reason(const Shape& shape, const core::Problem& problem) {
    return kv_buffer::unsupported_reason(shape, problem);
  }
  static std::string ranked_lower_reason(const Shape& /*shape*/, const core::Problem& /*problem*/,
                                         int32_t /*num_sms*/) {
    return {};
  }
  static std::unique_ptr<Plan> plan(const Shape& shape, const core::Problem& problem,
                                    int32_t num_sms, const Options& options) {
    return make_plan(shape, {Chip::kVariants, Chip::tile_of}, problem, num_sms,
                     options.is_batch_invariant);
  }

  template <class LaunchVariant>
  static void run(const Plan& plan, const core::Problem& problem, std::span<std::byte> workspace,
                  const LaunchVariant& launch_variant) {
    for (int32_t i = 0; i < plan.num_launches; ++i) {
      const Launch& launch = plan.launches[i];
      launch_variant(launch.variant, launch.ctas, make_arguments(plan, launch, problem, workspace));
    }
  }
};

// Instance<Chip, shape, variant>: the Config of a kernel.
template <class Chip, size_t shape_index, size_t variant_index, class T_>
struct Instance {
  using T = T_;
  static constexpr Shape kShape = Chip::kShapes[shape_index];
  static constexpr Variant variant() {
    Variant variant = Chip::kVariants[variant_index];
    // No prefill tile: the same kernel twice, and no launch of the first.
    if (!has_prefill_tile(kShape.depth_vo)) variant.rows = RowKind::kTokenGeneration;
    return variant;
  }
  static constexpr TileConfig tile = Chip::tile_of(kShape.depth_qk, kShape.depth_vo, variant());
};

}  // namespace pagoda::kernels::kv_buffer
