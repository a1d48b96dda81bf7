// KernelOf: the kernel type of a shape.
#pragma once

#include "kernels/common/instance.hpp"
#include "kernels/mha_toy/family.hpp"
#include "kernels/mha_toy/kernel.hpp"

namespace pagoda::kernels {

template <size_t shape_index, size_t variant_index>
struct KernelOf<mha_toy::Family, shape_index, variant_index> {
  using type = mha_toy::Kernel<mha_toy::kShapes[shape_index].depth>;
};

}  // namespace pagoda::kernels
