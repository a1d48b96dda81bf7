// KernelOf: the kernel type of a shape and variant.
#pragma once

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

}  // namespace pagoda::kernels
