// FunctorKernel: the kernel of a shape and variant that is compiled for a functor; void where
// is_for_functors() is false. Device code: no launch plan.
#pragma once

#include <cstddef>
#include <type_traits>

#include "kernels/common/functor.hpp"
#include "kernels/common/kv_buffer/async_buffers.hpp"
#include "kernels/common/kv_buffer/decode_mainloop.hpp"
#include "kernels/common/kv_buffer/kernel.hpp"
#include "kernels/mha_sm80/instances.hpp"
#include "operand/mma_sync.hpp"

namespace pagoda::mha_sm80 {

template <size_t shape, size_t variant, class Functor>
struct FunctorKernel {
  static constexpr Shape kShape = kShapes[shape];
  using Config =
      kernels::FunctorConfig<kernels::kv_buffer::InstanceOf<Chip, shape, variant>, Functor>;
  using type = std::conditional_t<is_for_functors(kShape, variant),
                                  kernels::kv_buffer::Kernel<Config, 80>, void>;
};

}  // namespace pagoda::mha_sm80
