// Family: what kernels::KernelTable asks of the Blackwell kernels of head dims above 128.
#pragma once

#include <memory>
#include <string>

#include "kernels/common/archs.hpp"
#include "kernels/mha_sm100_d512/launch_plan.hpp"

namespace pagoda::mha_sm100_d512 {

struct Family {
  using Shape = mha_sm100_d512::Shape;
  using Plan = LaunchPlan;

  static constexpr auto& kShapes = mha_sm100_d512::kShapes;
  static constexpr int32_t kCompiled[] = {100, 103};
  static constexpr kernels::Archs kArchs{kCompiled};
  static constexpr int32_t kFewestSms = 4;   // two pairs of CTAs
  static constexpr size_t kNumVariants = 2;  // by ScoreClass

  static core::Fit fit(const Shape& shape, const core::Problem& problem, const Options& options,
                       std::string* reason) {
    return mha_sm100_d512::fit(shape, problem, options, reason);
  }
  static std::unique_ptr<LaunchPlan> plan(const Shape& shape, const core::Problem& problem,
                                          int32_t num_sms, const Options& options) {
    return make_plan(shape, problem, num_sms, options);
  }

  template <class LaunchVariant>
  static void run(const LaunchPlan& plan, const core::Problem& problem,
                  std::span<std::byte> workspace, const LaunchVariant& launch_variant) {
    for (int32_t i = 0; i < plan.num_launches; ++i) {
      const Launch& launch = plan.launches[i];
      launch_variant(static_cast<size_t>(plan.scores), launch.ctas,
                     make_arguments(plan, launch, problem, workspace));
    }
  }
};

}  // namespace pagoda::mha_sm100_d512
