// KernelOf: the kernel type of a shape and variant.
#pragma once

#include <type_traits>

#include "kernels/common/functor_family.hpp"
#include "kernels/common/instance.hpp"
#include "kernels/mha_sm90/family.hpp"
#include "kernels/mha_sm90/functor_kernel.hpp"

namespace pagoda::kernels {

template <size_t shape_index, size_t variant_index>
struct KernelOf<mha_sm90::Family, shape_index, variant_index> {
  static constexpr mha_sm90::Shape kShape = mha_sm90::kShapes[shape_index];
  static constexpr mha_sm90::Variant kVariant = mha_sm90::kVariants[variant_index];
  using Config = mha_sm90::Instance<ElementType<kShape.dtype>, kShape.depth_qk, kShape.depth_vo,
                                    kVariant.rows, kVariant.scores, kVariant.load>;
  using type = std::conditional_t<mha_sm90::has_kernel(kShape, variant_index),
                                  mha_sm90::Kernel<Config>, void>;
};

template <size_t shape, class Named, size_t variant>
struct KernelOf<FunctorFamily<mha_sm90::Family, shape, Named>, 0, variant>
    : mha_sm90::FunctorKernel<shape, variant, typename Named::Functor> {};

}  // namespace pagoda::kernels
