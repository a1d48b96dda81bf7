// Family: the launches of the instances of one shape, on one machine (a GPU, the emulator).
#pragma once

#include "kernels/sm100_deep/kernel.hpp"
#include "kernels/sm100_deep/launch_plan.hpp"

namespace pagoda::sm100_deep {

// `Machine`: struct with Context, and `launch<Kernel>(ctas, arguments, context)`.
template <class Machine>
struct Family {
  using Function = void (*)(int32_t ctas, const sm100::LaunchArguments& arguments,
                            typename Machine::Context& context);
  Function functions[2];  // by ScoreClass

  [[nodiscard]] Function of(const LaunchPlan& plan) const {
    return functions[static_cast<size_t>(plan.scores)];
  }
};

template <class Machine, class T, class Out, int depth>
Family<Machine> make_family() {
  return {{Machine::template launch<SM100MHADeep<Instance<T, Out, depth, ScoreClass::kPlain>>>,
           Machine::template launch<SM100MHADeep<Instance<T, Out, depth, ScoreClass::kGeneral>>>}};
}

}  // namespace pagoda::sm100_deep
