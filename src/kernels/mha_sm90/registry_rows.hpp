// RowFunctions: what kernels::RegistryRows asks of these kernels.
#pragma once

#include "kernels/mha_sm90/family.hpp"
#include "kernels/mha_sm90/launch_plan.hpp"

namespace pagoda::mha_sm90 {

struct RowFunctions {
  template <class Machine>
  using Family = mha_sm90::Family<Machine>;
  using Plan = LaunchPlan;

  static constexpr std::span<const Shape> kShapes = mha_sm90::kShapes;
  static constexpr int32_t kArchs[] = {90};
  static constexpr int32_t kFewestSms =
      3;  // grids are persistent: a few CTAs do everything that many would;

  static std::string unsupported_reason(const Shape& shape, const core::Problem& problem) {
    return mha_sm90::unsupported_reason(shape, problem);
  }

  static std::string ranked_lower_reason(const Shape& /*shape*/, const core::Problem& /*problem*/,
                                         int32_t /*num_sms*/) {
    return {};
  }

  static std::unique_ptr<LaunchPlan> plan(const Shape& shape, const core::Problem& problem,
                                          int32_t num_sms, const Options& options) {
    return make_plan(shape, problem, num_sms, options.is_batch_invariant);
  }

  // `launch(function, ctas, arguments)`: once for each launch of the plan.
  template <class Machine, class Launch>
  static void run(const Family<Machine>& family, const LaunchPlan& plan,
                  const core::Problem& problem, std::span<std::byte> workspace,
                  const Launch& launch) {
    for (int32_t i = 0; i < plan.num_launches; ++i) {
      const mha_sm90::Launch& part = plan.launches[i];
      launch(family.of(part), part.ctas, make_arguments(plan, part, problem, workspace));
    }
  }
};

}  // namespace pagoda::mha_sm90
