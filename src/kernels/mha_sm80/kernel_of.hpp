// KernelOf: the kernel type of a shape and variant.
#pragma once

#include <type_traits>

#include "kernels/common/functor_family.hpp"
#include "kernels/common/instance.hpp"
#include "kernels/common/kv_buffer/async_buffers.hpp"
#include "kernels/common/kv_buffer/kernel.hpp"
#include "kernels/mha_sm80/family.hpp"
#include "operand/mma_sync.hpp"

namespace pagoda::kernels {

template <size_t shape, size_t variant>
struct KernelOf<mha_sm80::Family, shape, variant> {
  using type = kv_buffer::Kernel<kv_buffer::InstanceOf<mha_sm80::Chip, shape, variant>, 80>;
};

// For a functor: the plain variants.
template <size_t shape, class Named, size_t variant>
struct KernelOf<FunctorFamily<mha_sm80::Family, shape, Named>, 0, variant> {
  using Config =
      FunctorConfig<kv_buffer::InstanceOf<mha_sm80::Chip, shape, variant>, typename Named::Functor>;
  using type = std::conditional_t<mha_sm80::kVariants[variant].scores == ScoreClass::kPlain,
                                  kv_buffer::Kernel<Config, 80>, void>;
};

}  // namespace pagoda::kernels
