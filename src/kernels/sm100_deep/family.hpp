// Family: a shape and the launches of its instances, on one machine (a GPU, the emulator). The shape follows
// from the types of the instances.
#pragma once

#include "kernels/attention/element_type.hpp"
#include "kernels/sm100_deep/kernel.hpp"
#include "kernels/sm100_deep/launch_plan.hpp"

namespace pagoda::sm100_deep {

// `Machine`: struct with Context, and `launch<Kernel>(ctas, arguments, context)`.
template <class Machine>
struct Family {
  using Function = void (*)(int32_t ctas, const sm100::LaunchArguments& arguments,
                            typename Machine::Context& context);
  Shape shape;
  Function functions[2];  // by ScoreClass

  [[nodiscard]] Function of(const LaunchPlan& plan) const {
    return functions[static_cast<size_t>(plan.scores)];
  }
};

template <class Machine, class T, class Out, int depth>
Family<Machine> make_family() {
  using kernel::kDType;
  static constexpr Shape kShape = shape_of(kDType<T>, depth);
  return {kShape,
          {Machine::template launch<SM100MHADeep<Instance<T, Out, depth, ScoreClass::kPlain>>>,
           Machine::template launch<SM100MHADeep<Instance<T, Out, depth, ScoreClass::kGeneral>>>}};
}

}  // namespace pagoda::sm100_deep
