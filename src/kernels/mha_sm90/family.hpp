// Family: a shape and the launches of its instances, on one machine (a GPU, the emulator). The shape follows
// from the types of the instances.
#pragma once

#include "kernels/common/element_type.hpp"
#include "kernels/mha_sm90/kernel.hpp"
#include "kernels/mha_sm90/launch_plan.hpp"

namespace pagoda::mha_sm90 {

// `Machine`: struct with Context, and `launch<Kernel>(ctas, arguments, context)`.
template <class Machine>
struct Family {
  using Function = void (*)(int32_t ctas, const kernels::LaunchArguments& arguments,
                            typename Machine::Context& context);
  Shape shape;
  Function tokens[2], packed[2], gathered[2], fp8[2];  // by ScoreClass

  [[nodiscard]] Function of(const Launch& launch) const {
    const auto scores = static_cast<size_t>(launch.scores);
    if (launch.load == LoadKind::kGather) return gathered[scores];
    if (launch.load == LoadKind::kTmaFp8) return fp8[scores];
    return launch.rows == RowKind::kTokens ? tokens[scores] : packed[scores];
  }
};

template <class Machine, class T, int depth_qk, int depth_vo>
Family<Machine> make_family() {
  using kernels::kDType;
  static constexpr Shape kShape = shape_of(kDType<T>, depth_qk, depth_vo);
  constexpr auto kPlain = ScoreClass::kPlain, kGeneral = ScoreClass::kGeneral;
  constexpr auto kTokens = RowKind::kTokens, kPacked = RowKind::kPacked;
  return {kShape,
          {Machine::template launch<Kernel<Instance<T, depth_qk, depth_vo, kTokens, kPlain>>>,
           Machine::template launch<Kernel<Instance<T, depth_qk, depth_vo, kTokens, kGeneral>>>},
          {Machine::template launch<Kernel<Instance<T, depth_qk, depth_vo, kPacked, kPlain>>>,
           Machine::template launch<Kernel<Instance<T, depth_qk, depth_vo, kPacked, kGeneral>>>},
          {Machine::template launch<
               Kernel<Instance<T, depth_qk, depth_vo, kPacked, kPlain, LoadKind::kGather>>>,
           Machine::template launch<
               Kernel<Instance<T, depth_qk, depth_vo, kPacked, kGeneral, LoadKind::kGather>>>},
          {Machine::template launch<
               Kernel<Instance<T, depth_qk, depth_vo, kPacked, kPlain, LoadKind::kTmaFp8>>>,
           Machine::template launch<
               Kernel<Instance<T, depth_qk, depth_vo, kPacked, kGeneral, LoadKind::kTmaFp8>>>}};
}

}  // namespace pagoda::mha_sm90
