// FunctorKernel: the kernel of a shape and variant that is compiled for a functor; void where
// is_for_functors() is false. Device code: no launch plan.
#pragma once

#include <cstddef>
#include <type_traits>

#include "kernels/common/element_type.hpp"
#include "kernels/common/functor.hpp"
#include "kernels/mha_sm90/instances.hpp"
#include "kernels/mha_sm90/kernel.hpp"

namespace pagoda::mha_sm90 {

template <size_t shape, size_t variant, class Functor>
struct FunctorKernel {
  static constexpr Shape kShape = kShapes[shape];
  static constexpr Variant kVariant = kVariants[variant];
  using Config = kernels::FunctorConfig<
      Instance<kernels::ElementType<kShape.dtype>, kShape.depth_qk, kShape.depth_vo, kVariant.rows,
               ScoreClass::kPlain, kVariant.load>,
      Functor>;
  using type = std::conditional_t<is_for_functors(kShape, variant), Kernel<Config>, void>;
};

}  // namespace pagoda::mha_sm90
