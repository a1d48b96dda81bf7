// RowFunctions: what kernel::RegistryRows asks of these kernels.
#pragma once

#include "kernels/sm100_deep/family.hpp"
#include "kernels/sm100_deep/launch_plan.hpp"

namespace pagoda::sm100_deep {

struct RowFunctions {
  template <class Machine>
  using Family = sm100_deep::Family<Machine>;
  using Plan = LaunchPlan;

  static constexpr std::span<const Shape> kShapes = sm100_deep::kShapes;
  static constexpr int32_t kArchs[] = {100, 103};
  static constexpr int32_t kFewestSms = 4;  // two pairs of CTAs;

  static std::string unsupported_reason(const Shape& shape, const core::Problem& problem) {
    return sm100_deep::refuses(shape, problem);
  }

  static std::string ranked_lower_reason(const Shape& /*shape*/, const core::Problem& /*problem*/,
                                         int32_t /*num_sms*/) {
    return {};
  }

  static std::unique_ptr<LaunchPlan> plan(const Shape& shape, const core::Problem& problem,
                                          int32_t num_sms, const Options& /*options*/) {
    return sm100_deep::make_plan(shape, problem, {.num_sms = num_sms});
  }

  // `launch(function, ctas, arguments)`: of the plan's launch, where it has one.
  template <class Machine, class Launch>
  static void run(const Family<Machine>& family, const LaunchPlan& plan,
                  const core::Problem& problem, std::span<std::byte> /*workspace*/,
                  const Launch& launch) {
    if (plan.ctas > 0) launch(family.of(plan), plan.ctas, make_arguments(plan, problem));
  }
};

}  // namespace pagoda::sm100_deep
