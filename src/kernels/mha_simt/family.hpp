// Nvidia, Amd: what kernels::KernelTable asks of the SIMT kernels for the GPUs of each vendor, with
// warps of 32 and of 64 lanes.
#pragma once

#include <memory>
#include <string>

#include "kernels/common/archs.hpp"
#include "kernels/mha_simt/launch_plan.hpp"

namespace pagoda::mha_simt {

struct AnyFamily {
  using Shape = mha_simt::Shape;
  using Plan = LaunchPlan;

  static constexpr auto& kShapes = mha_simt::kShapes;
  static constexpr size_t kNumVariants = 1;
  static constexpr int32_t kFewestSms = 1;  // no grid depends on it, KV splits do
  static constexpr bool kIsFallback = true;

  static core::Fit fit(const Shape& shape, const core::Problem& problem, const Options& options,
                       std::string* reason) {
    return mha_simt::fit(shape, problem, options, reason);
  }
  static std::unique_ptr<Plan> plan(const Shape& shape, const core::Problem& problem,
                                    int32_t num_sms, const Options& options) {
    return make_plan(shape, problem, num_sms, options);
  }

  template <class LaunchVariant>
  static void run(const Plan& plan, const core::Problem& problem, std::span<std::byte> workspace,
                  const LaunchVariant& launch_variant) {
    if (plan.ctas > 0) launch_variant(0, plan.ctas, make_arguments(plan, problem, workspace));
  }
};

struct Nvidia : AnyFamily {
  // As of mha_sm80.
  static constexpr int32_t kCompiled[] = {80, 86, 87, 88, 89, 90, 110, 120, 121};
  static constexpr kernels::Archs kArchs{kCompiled, true};
};

struct Amd : AnyFamily {
  static constexpr int32_t kCompiled[] = {942};
  static constexpr kernels::Archs kArchs{kCompiled, false, kernels::Vendor::kAmd};
};

}  // namespace pagoda::mha_simt
