// KernelOf: the kernel type of a shape and variant.
#pragma once

#include <type_traits>

#include "kernels/common/element_type.hpp"
#include "kernels/common/functor_family.hpp"
#include "kernels/common/instance.hpp"
#include "kernels/mha_sm90/family.hpp"
#include "kernels/mha_sm90/kernel.hpp"

namespace pagoda::kernels {

template <size_t shape_index, size_t variant_index>
struct KernelOf<mha_sm90::Family, shape_index, variant_index> {
  static constexpr mha_sm90::Shape kShape = mha_sm90::kShapes[shape_index];
  static constexpr mha_sm90::Variant kVariant = mha_sm90::kVariants[variant_index];
  using type = mha_sm90::Kernel<
      mha_sm90::Instance<ElementType<kShape.dtype>, kShape.depth_qk, kShape.depth_vo, kVariant.rows,
                         kVariant.scores, kVariant.load>>;
};

// For a functor: the plain variants.
template <size_t shape, class Named, size_t variant>
struct KernelOf<FunctorFamily<mha_sm90::Family, shape, Named>, 0, variant> {
  static constexpr mha_sm90::Shape kShape = mha_sm90::kShapes[shape];
  static constexpr mha_sm90::Variant kVariant = mha_sm90::kVariants[variant];
  using Config =
      FunctorConfig<mha_sm90::Instance<ElementType<kShape.dtype>, kShape.depth_qk, kShape.depth_vo,
                                       kVariant.rows, ScoreClass::kPlain, kVariant.load>,
                    typename Named::Functor>;
  using type =
      std::conditional_t<kVariant.scores == ScoreClass::kPlain, mha_sm90::Kernel<Config>, void>;
};

}  // namespace pagoda::kernels
