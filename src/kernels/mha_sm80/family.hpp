// Family: what kernels::KernelTable asks of the kernels for every NVIDIA GPU from sm_80 on.
#pragma once

#include <memory>
#include <string>

#include "kernels/common/archs.hpp"
#include "kernels/mha_sm80/instances.hpp"

namespace pagoda::mha_sm80 {

struct Family {
  using Shape = mha_sm80::Shape;
  using Plan = kernels::kv_buffer::LaunchPlan;

  static constexpr auto& kShapes = mha_sm80::kShapes;
  // A build for all GPUs has code for sm_80, with PTX, and for sm_90a, where it is measured; a
  // build for the GPUs of a machine has theirs (src/CMakeLists.txt).
  static constexpr int32_t kCompiled[] = {80, 86, 87, 88, 89, 90, 110, 120, 121};
  static constexpr kernels::Archs kArchs{kCompiled, true};
  static constexpr int32_t kFewestSms = 3;
  static constexpr size_t kNumVariants = kernels::kv_buffer::kVariants.size();

  static std::string unsupported_reason(const Shape& shape, const core::Problem& problem) {
    return kernels::kv_buffer::unsupported_reason(shape, problem);
  }
  static std::string ranked_lower_reason(const Shape& /*shape*/, const core::Problem& /*problem*/,
                                         int32_t /*num_sms*/) {
    return {};
  }
  static std::unique_ptr<Plan> plan(const Shape& shape, const core::Problem& problem,
                                    int32_t num_sms, const Options& options) {
    return kernels::kv_buffer::make_plan(shape, tile_of, problem, num_sms,
                                         options.is_batch_invariant);
  }

  template <class LaunchVariant>
  static void run(const Plan& plan, const core::Problem& problem, std::span<std::byte> workspace,
                  const LaunchVariant& launch_variant) {
    for (int32_t i = 0; i < plan.num_launches; ++i) {
      const kernels::kv_buffer::Launch& launch = plan.launches[i];
      launch_variant(launch.variant, launch.ctas,
                     kernels::kv_buffer::make_arguments(plan, launch, problem, workspace));
    }
  }
};

}  // namespace pagoda::mha_sm80
