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
  static constexpr bool kPlainNeedsAlignedKV = true;  // of functors, functor_family.hpp
  static constexpr Family kFamily{Chip::kVariants, Chip::tile_of};

  static core::Fit fit(const Shape& shape, const core::Problem& problem, const Options& options,
                       std::string* reason) {
    return kv_buffer::fit(shape, problem, options, reason);
  }
  static std::unique_ptr<Plan> plan(const Shape& shape, const core::Problem& problem,
                                    int32_t num_sms, const Options& options) {
    return make_plan(shape, kFamily, problem, num_sms, options);
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

}  // namespace pagoda::kernels::kv_buffer
