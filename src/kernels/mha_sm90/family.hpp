// Family: what kernels::KernelTable asks of the Hopper kernels.
#pragma once

#include <iterator>
#include <memory>
#include <string>

#include "kernels/common/archs.hpp"
#include "kernels/mha_sm90/launch_plan.hpp"

namespace pagoda::mha_sm90 {

constexpr size_t variant_index(const Variant& variant) {
  for (size_t i = 0; i < std::size(kVariants); ++i) {
    if (kVariants[i] == variant) return i;
  }
  throw "no such variant is compiled";
}

struct Family {
  using Shape = mha_sm90::Shape;
  using Plan = LaunchPlan;

  static constexpr auto& kShapes = mha_sm90::kShapes;
  static constexpr int32_t kCompiled[] = {90};
  static constexpr kernels::Archs kArchs{kCompiled};
  static constexpr int32_t kFewestSms = 3;  // grids are persistent: few CTAs show what many would
  static constexpr size_t kNumVariants = std::size(kVariants);

  static core::Fit fit(const Shape& shape, const core::Problem& problem, const Options& options,
                       std::string* reason) {
    return mha_sm90::fit(shape, problem, options, reason);
  }
  static bool is_ranked_lower(const Shape& /*shape*/, const core::Problem& problem, int32_t num_sms,
                              const Options& options, std::string* reason) {
    return mha_sm90::is_ranked_lower(problem, num_sms, options, reason);
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
      launch_variant(variant_index({launch.rows, launch.load, launch.scores}), launch.ctas,
                     make_arguments(plan, launch, problem, workspace));
    }
  }
};

}  // namespace pagoda::mha_sm90
