// The parameters of the merge_states kernel, and make_params, which makes them from the call. Host
// code.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numbers>

#include "arch/global_ptr.hpp"
#include "arch/layout/types.hpp"
#include "core/int_math.hpp"
#include "kernels/common/access_width.hpp"
#include "pagoda/attention.hpp"

namespace pagoda::kernels {

// Strides in bytes. Shapes are those of the call.
struct MergeStatesParams {
  arch::GlobalPtr<const void> partial_out = nullptr;  // [num_parts, total_q, num_heads, dim]
  int64_t out_part_stride = 0;
  int64_t out_token_stride = 0;
  int64_t out_head_stride = 0;
  arch::GlobalPtr<const void> partial_lse = nullptr;  // fp32 [num_parts, total_q, num_heads]
  int64_t lse_part_stride = 0;
  int64_t lse_token_stride = 0;
  int64_t lse_head_stride = 0;
  arch::GlobalPtr<void> merged_out = nullptr;  // [total_q, num_heads, dim]
  int64_t merged_out_token_stride = 0;
  int64_t merged_out_head_stride = 0;
  arch::GlobalPtr<void> merged_lse = nullptr;  // fp32 [total_q, num_heads]; nullptr: not wanted
  int64_t merged_lse_token_stride = 0;
  int64_t merged_lse_head_stride = 0;
  arch::GlobalPtr<const uint8_t> row_mask = nullptr;  // [total_q], 0: skip the row; optional
  double lse_unit = 1;                                // natural units of one unit of the LSEs
  int64_t num_rows = 0;                               // total_q * num_heads
  int64_t num_parts = 0;
  int32_t num_heads = 1;
  int32_t dim = 0;
  int32_t chunk = 1;  // elements that a thread loads and stores at a time: 4 or 1
  DType partial_dtype = DType::kF32;
  DType merged_dtype = DType::kF32;
};

inline constexpr int kMergeStatesRowsPerBlock = 4;  // a warp each

// `merge` is valid; pointers are copied as they are. Data pointers must be aligned to their
// element.
[[nodiscard]] inline MergeStatesParams make_params(const MergeStates& merge) {
  const ConstTensor& parts = merge.partial_out;
  const ConstTensor& lses = merge.partial_lse;
  const int64_t part_size = size_bytes(parts.dtype), size = size_bytes(merge.out.dtype);
  constexpr int64_t kLseSize = sizeof(float);
  MergeStatesParams params{.partial_out = parts.data,
                           .out_part_stride = parts.strides[0] * part_size,
                           .out_token_stride = parts.strides[1] * part_size,
                           .out_head_stride = parts.strides[2] * part_size,
                           .partial_lse = lses.data,
                           .lse_part_stride = lses.strides[0] * kLseSize,
                           .lse_token_stride = lses.strides[1] * kLseSize,
                           .lse_head_stride = lses.strides[2] * kLseSize,
                           .merged_out = merge.out.data,
                           .merged_out_token_stride = merge.out.strides[0] * size,
                           .merged_out_head_stride = merge.out.strides[1] * size,
                           .merged_lse = merge.lse.present() ? merge.lse.data : nullptr,
                           .merged_lse_token_stride = merge.lse.strides[0] * kLseSize,
                           .merged_lse_head_stride = merge.lse.strides[1] * kLseSize,
                           .row_mask = merge.row_mask.data(),
                           .lse_unit = merge.lse_base == LogBase::k2 ? std::numbers::ln2 : 1.0,
                           .num_rows = merge.out.shape[0] * merge.out.shape[1],
                           .num_parts = parts.shape[0],
                           .num_heads = static_cast<int32_t>(merge.out.shape[1]),
                           .dim = static_cast<int32_t>(merge.out.shape[2]),
                           .partial_dtype = parts.dtype,
                           .merged_dtype = merge.out.dtype};
  const bool may_be_wide = RowAlignment(parts.data, parts.dtype)
                               .add(parts.shape[0], params.out_part_stride)
                               .add(parts.shape[1], params.out_token_stride)
                               .add(parts.shape[2], params.out_head_stride)
                               .allows(4) &&
                           RowAlignment(merge.out.data, merge.out.dtype)
                               .add(merge.out.shape[0], params.merged_out_token_stride)
                               .add(merge.out.shape[1], params.merged_out_head_stride)
                               .allows(4);
  if (params.dim % 4 == 0 && may_be_wide) params.chunk = 4;
  return params;
}

// x is 0 where there is nothing to merge: then do not launch.
[[nodiscard]] inline arch::Dim3 grid_of(const MergeStatesParams& params) {
  return {static_cast<int32_t>(std::min<int64_t>(
      core::ceil_div<int64_t>(params.num_rows, kMergeStatesRowsPerBlock), INT32_MAX))};
}

}  // namespace pagoda::kernels
