// RowFunctions: what kernels::RegistryRows asks of these kernels.
#pragma once

#include "kernels/mha_sm100/family.hpp"
#include "kernels/mha_sm100/launch_plan.hpp"

namespace pagoda::mha_sm100 {

struct RowFunctions {
  template <class Machine>
  using Family = mha_sm100::Family<Machine>;
  using Plan = LaunchPlan;

  static constexpr std::span<const Shape> kShapes = mha_sm100::kShapes;
  static constexpr int32_t kArchs[] = {100, 103};
  static constexpr int32_t kFewestSms =
      3;  // grids are persistent: a few CTAs do everything that many would;

  static std::string unsupported_reason(const Shape& shape, const core::Problem& problem) {
    return mha_sm100::unsupported_reason(shape, problem);
  }

  static std::string ranked_lower_reason(const Shape& shape, const core::Problem& problem,
                                         int32_t num_sms) {
    return mha_sm100::ranked_lower_reason(shape, problem, num_sms);
  }

  static std::unique_ptr<LaunchPlan> plan(const Shape& shape, const core::Problem& problem,
                                          int32_t num_sms, const Options& options) {
    return make_plan(shape, problem,
                     {.num_sms = num_sms, .is_batch_invariant = options.is_batch_invariant});
  }

  // `launch(function, ctas, arguments)`: once for each launch of the plan.
  template <class Machine, class Launch>
  static void run(const Family<Machine>& family, const LaunchPlan& plan,
                  const core::Problem& problem, std::span<std::byte> workspace,
                  const Launch& launch) {
    for (int32_t i = 0; i < plan.num_launches; ++i) {
      const mha_sm100::Launch& part = plan.launches[i];
      launch(family.of(plan), part.ctas, make_arguments(plan, part, problem, workspace));
    }
  }
};

}  // namespace pagoda::mha_sm100
