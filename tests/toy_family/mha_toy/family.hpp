// Family: what kernels::KernelTable asks of the toy kernels.
#pragma once

#include <memory>
#include <string>

#include "core/kernel.hpp"
#include "kernels/common/archs.hpp"
#include "kernels/common/call_arguments.hpp"
#include "kernels/common/launch_arguments.hpp"
#include "kernels/common/schedule_choice.hpp"
#include "kernels/mha_toy/instances.hpp"
#include "mask/make_expression_mask.hpp"

namespace pagoda::mha_toy {

struct LaunchPlan final : core::KernelPlan {
  schedule::TileGrid grid;
};

struct Family {
  using Shape = mha_toy::Shape;
  using Plan = LaunchPlan;

  static constexpr auto& kShapes = mha_toy::kShapes;
  static constexpr int32_t kCompiled[] = {90};
  static constexpr kernels::Archs kArchs{kCompiled};
  static constexpr int32_t kFewestSms = 1;
  static constexpr size_t kNumVariants = 1;

  static core::Fit fit(const Shape& shape, const core::Problem& p, const Options& options,
                       std::string* reason) {
    core::Fit fit = kernels::fit_of(p, shape.dtype, shape.depth, shape.depth, false, reason);
    if (fit == core::Fit::kServes) fit = kernels::fit_of_schedule(options, {}, reason);
    if (fit == core::Fit::kServes) fit = kernels::fit_without_splits(options, reason);
    if (fit != core::Fit::kServes) return fit;
    if (kernels::score_class(p) == kernels::ScoreClass::kPlain) return fit;
    return core::unfit(core::Fit::kFeatures, reason, [] { return "has plain scores only"; });
  }
  static bool is_ranked_lower(const Shape& /*shape*/, const core::Problem& /*problem*/,
                              int32_t /*num_sms*/, std::string* reason) {
    if (reason != nullptr) *reason = "is a toy";
    return true;
  }
  static std::unique_ptr<LaunchPlan> plan(const Shape& /*shape*/, const core::Problem& p,
                                          int32_t /*num_sms*/, const Options& /*options*/) {
    auto plan = std::make_unique<LaunchPlan>();
    plan->grid = kernels::tile_grid(p, 1, 32, int64_t{32} << 20);
    if (kernels::total_rows(p) > 0) plan->num_work_items = plan->grid.size();
    return plan;
  }

  template <class LaunchVariant>
  static void run(const LaunchPlan& plan, const core::Problem& p,
                  std::span<std::byte> /*workspace*/, const LaunchVariant& launch_variant) {
    if (plan.num_work_items == 0) return;
    kernels::LaunchArguments result;
    kernels::set_call(p, result.arguments);
    result.arguments.grid = plan.grid;
    launch_variant(size_t{0}, plan.grid.size(), result);
  }
};

}  // namespace pagoda::mha_toy
