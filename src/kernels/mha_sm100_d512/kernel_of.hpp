// KernelOf: the kernel type of a shape and class of scores. O of 8-bit queries is bf16.
#pragma once

#include <type_traits>

#include "kernels/common/element_type.hpp"
#include "kernels/common/functor_family.hpp"
#include "kernels/common/instance.hpp"
#include "kernels/mha_sm100_d512/family.hpp"
#include "kernels/mha_sm100_d512/functor_kernel.hpp"

namespace pagoda::kernels {

template <size_t shape_index, size_t variant_index>
struct KernelOf<mha_sm100_d512::Family, shape_index, variant_index> {
  static constexpr mha_sm100_d512::Shape kShape = mha_sm100_d512::kShapes[shape_index];
  using T = ElementType<kShape.dtype>;
  using Out = std::conditional_t<sizeof(T) == 1, arch::BFloat16, T>;
  using type = mha_sm100_d512::SM100MHAD512<
      mha_sm100_d512::Instance<T, Out, kShape.depth, static_cast<ScoreClass>(variant_index)>>;
};

template <size_t shape, class Named, size_t variant>
struct KernelOf<FunctorFamily<mha_sm100_d512::Family, shape, Named>, 0, variant>
    : mha_sm100_d512::FunctorKernel<shape, variant, typename Named::Functor> {};

}  // namespace pagoda::kernels
