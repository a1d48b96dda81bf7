// KernelOf: the kernel type of a shape.
#pragma once

#include "kernels/common/instance.hpp"
#include "kernels/mha_simt/family.hpp"
#include "kernels/mha_simt/kernel.hpp"

namespace pagoda::mha_simt {

// Its parameters stand in the kernel's symbol, which profilers print.
template <int depth_qk, int depth_vo, int BM, int warp_size>
struct Instance {
  static constexpr TileConfig tile{depth_qk, depth_vo, BM, warp_size};
};

template <size_t shape, int warp_size>
using InstanceOf =
    Instance<kShapes[shape].depth_qk, kShapes[shape].depth_vo, kShapes[shape].BM, warp_size>;

}  // namespace pagoda::mha_simt

namespace pagoda::kernels {

template <size_t shape, size_t variant>
struct KernelOf<mha_simt::Nvidia, shape, variant> {
  using type = mha_simt::Kernel<mha_simt::InstanceOf<shape, 32>, 80>;
};
template <size_t shape, size_t variant>
struct KernelOf<mha_simt::Amd, shape, variant> {
  using type = mha_simt::Kernel<mha_simt::InstanceOf<shape, 64>, 942>;
};

}  // namespace pagoda::kernels
