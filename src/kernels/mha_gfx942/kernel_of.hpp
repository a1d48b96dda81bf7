// KernelOf: the kernel type of a shape and variant.
#pragma once

#include "kernels/common/instance.hpp"
#include "kernels/common/kv_buffer/kernel.hpp"
#include "kernels/mha_gfx942/family.hpp"
#include "operand/buffer_row_loader.hpp"
#include "operand/mfma.hpp"

namespace pagoda::kernels {

template <size_t shape, size_t variant>
struct KernelOf<mha_gfx942::Family, shape, variant> {
  using type = kv_buffer::Kernel<kv_buffer::InstanceOf<mha_gfx942::Chip, shape, variant>, 942>;
};

}  // namespace pagoda::kernels
