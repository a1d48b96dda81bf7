// append_kv on a GPU: new rows of K and V go to the slots of a paged cache, converted to its type.
//
//   k_new, v_new   [num_tokens, num_kv_heads, dim], fp32, fp16, bf16; dim of K and V may differ
//   k_cache, v_cache   NHD [num_pages, page_size, num_kv_heads, dim] or HND; also fp8 e4m3
//   slots          [num_tokens] int64, page * page_size + row; negative: the token is skipped
//
// Strides are free but for the last dimension, page sizes too; offsets are 64-bit. The bits are those
// of cpu/append_kv.cpp: equal types are copied, others round to nearest even, fp8 is value / scale
// (an IEEE division: do not compile with -use_fast_math) and saturates. Two tokens with one slot
// race. One launch writes K and V.
//
// One instance serves all types, widths and layouts: each is a branch that all threads of a warp take
// alike, a few instructions beside 8 elements. It is bound by memory. Predicted, per token and head:
// (dim_k + dim_v) * (size_from + size_to) bytes, and 8 bytes a token and head for the slot (L2). 4096
// tokens, 8 heads, depth 128, bf16 to bf16: 33.6 MB, 7.8 us at the 4.28 TB/s that a copy reaches on an
// H200; to fp8: 25.2 MB, 5.9 us. 64 tokens: 0.5 MB, 0.1 us: the launch itself is the floor. Where a row
// or a pointer is not a multiple of 16 bytes accesses become narrower, down to an element.
#pragma once

#include <cstdint>

#include "arch/memory.hpp"
#include "arch/thread.hpp"
#include "kernels/append_kv/append_kv_params.hpp"
#include "kernels/elements.hpp"

namespace pagoda::kernels {

struct AppendKVKernel {
  using Params = AppendKVParams;
  struct Storage {};
  static constexpr int kThreads = 2 * kAppendKVThreadsPerSide;  // the first half: K, the second: V
  static constexpr int kClusterSize = 1, kMinArch = 80;

  static PAGODA_DEVICE void run(const Params& params) {
    const int thread = arch::thread_idx() % kAppendKVThreadsPerSide;
    const AppendKVSide& side = params.sides[arch::warp_idx() * 32 / kAppendKVThreadsPerSide];
    const int rows = kAppendKVThreadsPerSide >> params.lanes_log2;  // that the CTA moves at a time
    const int row = thread >> params.lanes_log2;
    const int lane = thread & ((1 << params.lanes_log2) - 1);
    for (int64_t block = arch::block_idx().x; block < params.num_blocks;
         block += arch::grid_dim().x) {
      const int64_t token = block / params.num_heads * rows + row;
      if (token >= params.num_tokens) continue;
      const int64_t slot = arch::load_read_only(params.slots + token);
      if (slot < 0) continue;
      append_row(params, side, token, static_cast<int32_t>(block % params.num_heads), slot, lane);
    }
  }

 private:
  // The row of one token and head, by the lanes that share it.
  static PAGODA_DEVICE void append_row(const Params& params, const AppendKVSide& side,
                                       int64_t token, int32_t head, int64_t slot, int lane) {
    const Row row{
        .from = static_cast<const uint8_t*>(side.from) + token * side.from_token_stride +
                head * side.from_head_stride,
        .to = static_cast<uint8_t*>(side.to) + slot / params.page_size * side.to_page_stride +
              slot % params.page_size * side.to_row_stride + head * side.to_head_stride,
        .scale = side.scale_per_head != nullptr ? arch::load_read_only(side.scale_per_head + head)
                                                : side.scale,
        .dim = side.dim,
        .lane = lane,
        .lanes = 1 << params.lanes_log2};
    switch (side.chunk) {
      case 8: append_chunks<8>(params, row); return;
      case 4: append_chunks<4>(params, row); return;
      case 2: append_chunks<2>(params, row); return;
      default: append_chunks<1>(params, row); return;
    }
  }

  struct Row {
    const uint8_t* from;
    uint8_t* to;
    float scale;
    int32_t dim;
    int32_t lane, lanes;
  };

  template <int N>
  static PAGODA_DEVICE void append_chunks(const Params& params, const Row& row) {
    const int64_t from_size = size_of(params.from), to_size = size_of(params.to);
    for (int32_t i = row.lane * N; i < row.dim; i += row.lanes * N) {
      const uint8_t* const from = row.from + i * from_size;
      uint8_t* const to = row.to + i * to_size;
      if (params.from != params.to) {
        float values[N];
        load_chunk(params.from, from, values);
        store_chunk(params.to, to, values, row.scale);
      } else if (from_size == 4) {  // a copy: not even a NaN changes
        store_raw<4 * N>(to, load_raw<4 * N>(from));
      } else {
        store_raw<2 * N>(to, load_raw<2 * N>(from));
      }
    }
  }

  static PAGODA_DEVICE int64_t size_of(DType dtype) {
    return dtype == DType::kF32 ? 4 : dtype == DType::kF8E4M3 ? 1 : 2;
  }

  template <int N>
  static PAGODA_DEVICE void load_chunk(DType dtype, const uint8_t* from, float (&values)[N]) {
    switch (dtype) {
      case DType::kF32: to_floats<DType::kF32>(load_raw<4 * N>(from), values); return;
      case DType::kF16: to_floats<DType::kF16>(load_raw<2 * N>(from), values); return;
      default: to_floats<DType::kBF16>(load_raw<2 * N>(from), values); return;
    }
  }
  template <int N>
  static PAGODA_DEVICE void store_chunk(DType dtype, uint8_t* to, const float (&values)[N],
                                        float scale) {
    switch (dtype) {
      case DType::kF32: store_floats<DType::kF32>(to, values); return;
      case DType::kF16: store_floats<DType::kF16>(to, values); return;
      case DType::kBF16: store_floats<DType::kBF16>(to, values); return;
      default: store_floats<DType::kF8E4M3>(to, values, scale); return;
    }
  }
};

}  // namespace pagoda::kernels
