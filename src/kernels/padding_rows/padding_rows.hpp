// padding_rows on a GPU: writes the rows of the outputs past the last sequence of ragged queries,
// O = 0, LSE = row_max = -infinity. CUDA graphs pad a batch to a fixed number of rows.
//
// A CTA takes a row at a time, a warp of it a head. Where there is no such row the kernel loads one
// offset.
#pragma once

#include <cstdint>
#include <limits>

#include "arch/layout/types.hpp"
#include "arch/memory.hpp"
#include "arch/thread.hpp"
#include "kernels/padding_rows/padding_rows_params.hpp"

namespace pagoda::kernels {

// `warp`: lanes of a warp, 32 or (AMD) 64.
template <int warp>
struct PaddingRows {
  using Params = PaddingRowsParams;
  struct Storage {};
  static constexpr int kThreads = kPaddingRowsThreads;
  static constexpr int kWarpSize = warp, kClusterSize = 1, kMinArch = 80;

  static PAGODA_DEVICE void run(const Params& params) {
    const int64_t first = arch::load_read_only(params.first_row);
    for (int64_t row = first + arch::block_idx().x; row < params.num_rows;
         row += arch::grid_dim().x) {
      if (params.is_wide) {
        zero_row(params, row, arch::Words<4>{{0, 0, 0, 0}});
      } else {
        zero_row(params, row, uint8_t{0});
      }
      fill(params, params.lse, row * params.lse_row_stride, params.lse_head_stride);
      fill(params, params.row_max, row * params.row_max_row_stride, params.row_max_head_stride);
    }
  }

 private:
  static constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

  template <class Store>
  static PAGODA_DEVICE void zero_row(const Params& params, int64_t row, const Store& zero) {
    constexpr int32_t kBytes = sizeof(Store);
    for (int32_t head = arch::warp_idx(); head < params.num_heads; head += kThreads / warp) {
      const arch::GlobalPtr<uint8_t> to =
          params.out.as<uint8_t>() + row * params.out_row_stride + head * params.out_head_stride;
      for (int32_t at = arch::lane_idx() * kBytes; at < params.row_bytes; at += warp * kBytes) {
        arch::store((to + int64_t{at}).template as<Store>(), zero);
      }
    }
  }
  static PAGODA_DEVICE void fill(const Params& params, arch::GlobalPtr<void> data, int64_t at,
                                 int64_t head_stride) {
    if (data == nullptr) return;
    for (int32_t head = arch::thread_idx(); head < params.num_heads; head += kThreads) {
      arch::store((data.as<uint8_t>() + (at + head * head_stride)).template as<float>(),
                  kMinusInfinity);
    }
  }
};

using PaddingRowsKernel = PaddingRows<32>;

}  // namespace pagoda::kernels
