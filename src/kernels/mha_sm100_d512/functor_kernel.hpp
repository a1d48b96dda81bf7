// FunctorKernel: the kernel of a shape and variant that is compiled for a functor; void where
// is_for_functors() is false. Device code: no launch plan.
#pragma once

#include <cstddef>
#include <type_traits>

#include "kernels/common/element_type.hpp"
#include "kernels/common/functor.hpp"
#include "kernels/mha_sm100_d512/instances.hpp"
#include "kernels/mha_sm100_d512/kernel.hpp"

namespace pagoda::mha_sm100_d512 {

template <size_t shape, size_t variant, class Functor>
struct FunctorKernel {
  static constexpr Shape kShape = kShapes[shape];
  using T = kernels::ElementType<kShape.dtype>;
  using Out = std::conditional_t<sizeof(T) == 1, arch::BFloat16, T>;
  using Config =
      kernels::FunctorConfig<Instance<T, Out, kShape.depth, ScoreClass::kPlain>, Functor>;
  using type = std::conditional_t<is_for_functors(kShape, variant), SM100MHAD512<Config>, void>;
};

}  // namespace pagoda::mha_sm100_d512
