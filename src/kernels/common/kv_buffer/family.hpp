// FamilyOf: what kernels::KernelTable asks of a family whose kernels are those of this folder.
#pragma once

#include <memory>
#include <string>

#include "kernels/common/element_type.hpp"
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
  static constexpr bool kPlainNeedsAlignedKV = true;  // of functors, functor_family.hpp

  static core::Fit fit(const Shape& shape, const core::Problem& problem, const Options& options,
                       std::string* reason) {
    return kv_buffer::fit(shape, problem, options, reason);
  }
  static std::unique_ptr<Plan> plan(const Shape& shape, const core::Problem& problem,
                                    int32_t num_sms, const Options& options) {
    return make_plan(shape, {Chip::kVariants, Chip::tile_of}, problem, num_sms, options);
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

// The Config of a kernel. Its parameters stand in the kernel's symbol, which profilers print.
template <class Chip, class T_, int depth_qk, int depth_vo, RowKind rows, Staging staging,
          ScoreClass scores>
struct Instance {
  using T = T_;
  static constexpr TileConfig tile = Chip::tile_of(depth_qk, depth_vo, {rows, staging, scores});
};

constexpr RowKind rows_of(const Shape& shape, const Variant& variant) {
  // No prefill tile: the same kernel twice, and no launch of the first.
  return has_prefill_tile(shape.depth_vo) ? variant.rows : RowKind::kTokenGeneration;
}

// The Instance of Chip::kShapes[shape] and Chip::kVariants[variant].
template <class Chip, size_t shape, size_t variant>
using InstanceOf =
    Instance<Chip, ElementType<Chip::kShapes[shape].dtype>, Chip::kShapes[shape].depth_qk,
             Chip::kShapes[shape].depth_vo, rows_of(Chip::kShapes[shape], Chip::kVariants[variant]),
             Chip::kVariants[variant].staging, Chip::kVariants[variant].scores>;

}  // namespace pagoda::kernels::kv_buffer
