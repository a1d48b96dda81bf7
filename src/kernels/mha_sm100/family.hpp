// Family: a shape and the launches of its instances, on one machine (a GPU, the emulator). The shape follows
// from the types of the instances.
#pragma once

#include "kernels/common/element_type.hpp"
#include "kernels/mha_sm100/kernel.hpp"
#include "kernels/mha_sm100/launch_plan.hpp"

namespace pagoda::mha_sm100 {

// `Machine`: struct with Context, and `launch<Kernel>(ctas, arguments, context)`.
template <class Machine>
struct Family {
  using Function = void (*)(int32_t ctas, const kernels::LaunchArguments& arguments,
                            typename Machine::Context& context);
  Shape shape;
  Function functions[2];  // by ScoreClass

  [[nodiscard]] Function of(const LaunchPlan& plan) const {
    return functions[static_cast<size_t>(plan.scores)];
  }
};

template <class Machine, class T, class Out, int depth, int ctas = 1>
Family<Machine> make_family() {
  using kernels::kDType;
  static constexpr Shape kShape = shape_of(kDType<T>, depth, ctas);
  return {
      kShape,
      {Machine::template launch<SM100MHA2Q<Instance<T, Out, depth, ScoreClass::kPlain, ctas>>>,
       Machine::template launch<SM100MHA2Q<Instance<T, Out, depth, ScoreClass::kGeneral, ctas>>>}};
}

}  // namespace pagoda::mha_sm100
