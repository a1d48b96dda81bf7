// KernelOf: the kernel type of a shape and variant.
#pragma once

#include "kernels/common/element_type.hpp"
#include "kernels/common/instance.hpp"
#include "kernels/common/kv_buffer/kernel.hpp"
#include "kernels/mha_sm80/family.hpp"

namespace pagoda::mha_sm80 {

// The Config of a kernel.
template <class T_, int depth_qk, int depth_vo, RowKind rows, Staging staging, ScoreClass scores>
struct Instance {
  using T = T_;
  static constexpr TileConfig tile = tile_of(depth_qk, depth_vo, Variant{rows, staging, scores});
};

}  // namespace pagoda::mha_sm80

namespace pagoda::kernels {

template <size_t shape_index, size_t variant_index>
struct KernelOf<mha_sm80::Family, shape_index, variant_index> {
  static constexpr kv_buffer::Shape kShape = mha_sm80::kShapes[shape_index];
  static constexpr kv_buffer::Variant kVariant = kv_buffer::kVariants[variant_index];
  using type = kv_buffer::Kernel<
      mha_sm80::Instance<ElementType<kShape.dtype>, kShape.depth_qk, kShape.depth_vo,
                         // no prefill tile: the same kernel twice, and no launch of the first
                         kv_buffer::has_prefill_tile(kShape.depth_vo)
                             ? kVariant.rows
                             : kv_buffer::RowKind::kTokenGeneration,
                         kVariant.staging, kVariant.scores>,
      80>;
};

}  // namespace pagoda::kernels
