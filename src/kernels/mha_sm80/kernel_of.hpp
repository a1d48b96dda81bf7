// KernelOf: the kernel type of a shape and variant.
#pragma once

#include <type_traits>

#include "kernels/common/functor_family.hpp"
#include "kernels/common/instance.hpp"
#include "kernels/mha_sm80/family.hpp"
#include "kernels/mha_sm80/functor_kernel.hpp"

namespace pagoda::kernels {

template <size_t shape, size_t variant>
struct KernelOf<mha_sm80::Family, shape, variant> {
  using Config = kv_buffer::InstanceOf<mha_sm80::Chip, shape, variant>;
  static constexpr bool exists =
      kv_buffer::has_kernel(mha_sm80::kShapes[shape], mha_sm80::kVariants[variant]);
  using type = std::conditional_t<exists, kv_buffer::Kernel<Config, 80>, void>;
};

template <size_t shape, class Named, size_t variant>
struct KernelOf<FunctorFamily<mha_sm80::Family, shape, Named>, 0, variant>
    : mha_sm80::FunctorKernel<shape, variant, typename Named::Functor> {};

}  // namespace pagoda::kernels
