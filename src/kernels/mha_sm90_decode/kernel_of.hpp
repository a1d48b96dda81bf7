// KernelOf: the kernel type of a shape.
#pragma once

#include <type_traits>

#include "kernels/common/instance.hpp"
#include "kernels/common/kv_buffer/async_buffers.hpp"
#include "kernels/common/kv_buffer/cluster_merge.hpp"
#include "kernels/common/kv_buffer/decode_mainloop.hpp"
#include "kernels/common/kv_buffer/kernel.hpp"
#include "kernels/common/kv_buffer/latent_mainloop.hpp"
#include "kernels/mha_sm90_decode/family.hpp"
#include "operand/mma_sync.hpp"

namespace pagoda::kernels {

template <size_t shape, size_t variant>
struct KernelOf<mha_sm90_decode::Family, shape, variant> {
  using Config = kv_buffer::InstanceOf<mha_sm90_decode::Chip, shape, variant>;
  static constexpr bool exists =
      kv_buffer::has_kernel(mha_sm90_decode::kShapes[shape], mha_sm90_decode::kVariants[variant]);
  using type = std::conditional_t<exists, kv_buffer::Kernel<Config, 90>, void>;
};

}  // namespace pagoda::kernels
