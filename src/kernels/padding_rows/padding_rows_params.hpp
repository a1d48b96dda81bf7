// The parameters of the padding_rows kernel, and make_padding_rows_params, which makes them from
// the call. Host code.
#pragma once

#include <algorithm>
#include <cstdint>

#include "arch/global_ptr.hpp"
#include "arch/layout/types.hpp"
#include "core/problem.hpp"
#include "kernels/common/access_width.hpp"

namespace pagoda::kernels {

// Strides in bytes.
struct PaddingRowsParams {
  // The first row past the last sequence: the last of cu_seqlens_q.
  arch::GlobalPtr<const int32_t> first_row = nullptr;
  int64_t num_rows = 0;  // total_q
  int32_t num_heads = 1;
  int32_t row_bytes = 0;                // of one head of O
  bool is_wide = false;                 // O may be stored 16 bytes at a time; else bytes
  arch::GlobalPtr<void> out = nullptr;  // [total_q, num_heads, row_bytes]
  int64_t out_row_stride = 0, out_head_stride = 0;
  arch::GlobalPtr<void> lse = nullptr;  // fp32 [total_q, num_heads]; nullptr: not wanted
  int64_t lse_row_stride = 0, lse_head_stride = 0;
  arch::GlobalPtr<void> row_max = nullptr;  // like lse
  int64_t row_max_row_stride = 0, row_max_head_stride = 0;
};

inline constexpr int kPaddingRowsThreads = 128;

[[nodiscard]] inline PaddingRowsParams make_padding_rows_params(const core::Problem& p) {
  const auto size = static_cast<int32_t>(size_bytes(p.out.dtype));
  constexpr int64_t kFloat = sizeof(float);
  PaddingRowsParams params{.first_row = p.cu_seqlens_q.data() + p.batch,
                           .num_rows = p.total_q,
                           .num_heads = p.num_q_heads,
                           .row_bytes = p.head_dim_vo * size,
                           .out = p.out.data,
                           .out_row_stride = p.out.row_stride * size,
                           .out_head_stride = p.out.head_stride * size,
                           .lse = p.lse.data,
                           .lse_row_stride = p.lse.row_stride * kFloat,
                           .lse_head_stride = p.lse.head_stride * kFloat,
                           .row_max = p.row_max.data,
                           .row_max_row_stride = p.row_max.row_stride * kFloat,
                           .row_max_head_stride = p.row_max.head_stride * kFloat};
  const RowAlignment rows = RowAlignment(p.out.data, p.out.dtype)
                                .add(p.total_q, params.out_row_stride)
                                .add(p.num_q_heads, params.out_head_stride);
  params.is_wide = params.row_bytes % 16 == 0 && rows.allows(16 / size);
  return params;
}

// x is 0 where there is no row at all: then do not launch. Which rows are padding rows only the GPU
// knows; a CTA takes every x-th of them.
[[nodiscard]] inline arch::Dim3 grid_of(const PaddingRowsParams& params) {
  constexpr int64_t kMostCtas = 512;
  return {static_cast<int32_t>(std::min(params.num_rows, kMostCtas))};
}

}  // namespace pagoda::kernels
