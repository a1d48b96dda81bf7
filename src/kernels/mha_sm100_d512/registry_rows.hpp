// RowFunctions: what kernels::RegistryRows asks of these kernels.
#pragma once

#include "kernels/mha_sm100_d512/family.hpp"
#include "kernels/mha_sm100_d512/launch_plan.hpp"

namespace pagoda::mha_sm100_d512 {

struct RowFunctions {
  template <class Machine>
  using Family = mha_sm100_d512::Family<Machine>;
  using Plan = LaunchPlan;

  static constexpr std::span<const Shape> kShapes = mha_sm100_d512::kShapes;
  static constexpr int32_t kArchs[] = {100, 103};
  static constexpr int32_t kFewestSms = 4;  // two pairs of CTAs;

  static std::string unsupported_reason(const Shape& shape, const core::Problem& problem) {
    return mha_sm100_d512::unsupported_reason(shape, problem);
  }

  static std::string ranked_lower_reason(const Shape& /*shape*/, const core::Problem& /*problem*/,
                                         int32_t /*num_sms*/) {
    return {};
  }

  static std::unique_ptr<LaunchPlan> plan(const Shape& shape, const core::Problem& problem,
                                          int32_t num_sms, const Options& /*options*/) {
    return mha_sm100_d512::make_plan(shape, problem, {.num_sms = num_sms});
  }

  // `launch(function, ctas, arguments)`: of the plan's launch, where it has one.
  template <class Machine, class Launch>
  static void run(const Family<Machine>& family, const LaunchPlan& plan,
                  const core::Problem& problem, std::span<std::byte> /*workspace*/,
                  const Launch& launch) {
    if (plan.ctas > 0) launch(family.of(plan), plan.ctas, make_arguments(plan, problem));
  }
};

}  // namespace pagoda::mha_sm100_d512
