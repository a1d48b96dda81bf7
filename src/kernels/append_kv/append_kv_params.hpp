// The parameters of the append_kv kernel, and make_params, which makes them from the call. Host
// code.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "arch/global_ptr.hpp"
#include "arch/layout/types.hpp"
#include "core/int_math.hpp"
#include "kernels/common/access_width.hpp"
#include "pagoda/attention.hpp"

namespace pagoda::kernels {

// K or V: its new rows, its cache, its scales. Strides in bytes.
struct AppendKVSide {
  arch::GlobalPtr<const void> from = nullptr;  // [num_tokens, num_heads, dim]
  int64_t from_token_stride = 0;
  int64_t from_head_stride = 0;
  // [num_pages, page_size, num_heads, dim], in the order that the strides say
  arch::GlobalPtr<void> to = nullptr;
  int64_t to_page_stride = 0;
  int64_t to_row_stride = 0;
  int64_t to_head_stride = 0;
  // [num_heads] at this stride, in elements, read by the kernel; nullptr: `scale`
  arch::GlobalPtr<const float> scale_per_head = nullptr;
  int64_t scale_stride = 0;
  float scale = 1;
  int32_t dim = 0;    // elements of a row
  int32_t chunk = 1;  // elements that a thread loads and stores at a time: 8, 4, 2 or 1
};

struct AppendKVParams {
  AppendKVSide sides[2];  // K, V
  // [num_tokens], read by the kernel; negative: skip
  arch::GlobalPtr<const int64_t> slots = nullptr;
  int64_t num_tokens = 0;
  int64_t page_size = 1;
  int64_t num_blocks = 0;  // of tokens and one head each; the grid may be smaller
  int32_t num_heads = 1;
  int32_t lanes_log2 = 0;  // 2^lanes_log2 threads, at most a warp, share a row
  DType from = DType::kF32;
  DType to = DType::kF32;
};

inline constexpr int kAppendKVThreadsPerSide = 128;

namespace detail {

inline AppendKVSide make_append_side(const ConstTensor& from, const Tensor& to, bool is_nhd,
                                     float scale, const ConstTensor& scale_per_head) {
  const size_t row_axis = is_nhd ? 1 : 2, head_axis = is_nhd ? 2 : 1;
  const int64_t from_size = size_bytes(from.dtype), to_size = size_bytes(to.dtype);
  AppendKVSide side{.from = from.data,
                    .from_token_stride = from.strides[0] * from_size,
                    .from_head_stride = from.strides[1] * from_size,
                    .to = to.data,
                    .to_page_stride = to.strides[0] * to_size,
                    .to_row_stride = to.strides[row_axis] * to_size,
                    .to_head_stride = to.strides[head_axis] * to_size,
                    .scale_per_head = static_cast<const float*>(scale_per_head.data),
                    .scale_stride = scale_per_head.strides[0],
                    .scale = scale,
                    .dim = static_cast<int32_t>(from.shape[2])};
  const RowAlignment source = RowAlignment(from.data, from.dtype)
                                  .add(from.shape[0], side.from_token_stride)
                                  .add(from.shape[1], side.from_head_stride);
  const RowAlignment target = RowAlignment(to.data, to.dtype)
                                  .add(to.shape[0], side.to_page_stride)
                                  .add(to.shape[row_axis], side.to_row_stride)
                                  .add(to.shape[head_axis], side.to_head_stride);
  side.chunk = 8;
  while (side.chunk > 1 &&
         (side.dim % side.chunk != 0 || !source.allows(side.chunk) || !target.allows(side.chunk))) {
    side.chunk /= 2;
  }
  return side;
}

}  // namespace detail

// `append` is valid; pointers are copied as they are. Data pointers must be aligned to their
// element. The kernel reads slot_mapping and the per-head scales itself: for a GPU, set device
// copies into `slots` and `sides[].scale_per_head` where the call's own are in host memory.
[[nodiscard]] inline AppendKVParams make_params(const AppendKV& append) {
  const bool is_nhd = append.layout == PageLayout::kNHD;
  const KVScales& scales = append.kv_scales;
  AppendKVParams params{.sides = {detail::make_append_side(append.k_new, append.k_cache, is_nhd,
                                                           scales.k, scales.k_per_head),
                                  detail::make_append_side(append.v_new, append.v_cache, is_nhd,
                                                           scales.v, scales.v_per_head)},
                        .slots = append.slot_mapping.data(),
                        .num_tokens = append.k_new.shape[0],
                        .page_size = append.k_cache.shape[is_nhd ? 1 : 2],
                        .num_heads = static_cast<int32_t>(append.k_new.shape[1]),
                        .from = append.k_new.dtype,
                        .to = append.k_cache.dtype};
  int64_t most_chunks = 1;
  for (const AppendKVSide& side : params.sides) {
    most_chunks = std::max<int64_t>(most_chunks, side.dim / side.chunk);
  }
  const auto lanes = std::bit_ceil(static_cast<uint64_t>(std::min<int64_t>(most_chunks, 32)));
  params.lanes_log2 = std::countr_zero(lanes);
  params.num_blocks =
      params.num_heads *
      core::ceil_div<int64_t>(params.num_tokens, kAppendKVThreadsPerSide >> params.lanes_log2);
  return params;
}

// x is 0 where there is nothing to store: then do not launch.
[[nodiscard]] inline arch::Dim3 grid_of(const AppendKVParams& params) {
  return {static_cast<int32_t>(std::min<int64_t>(params.num_blocks, INT32_MAX))};
}

}  // namespace pagoda::kernels
