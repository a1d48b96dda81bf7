// append_kv on a GPU: stores new rows of K and V in the slots of a paged cache, converted to its
// type.
//
//   k_new, v_new   [num_tokens, num_kv_heads, dim], fp32, fp16, bf16; dim of K and V may differ
//   k_cache, v_cache   NHD [num_pages, page_size, num_kv_heads, dim] or HND; also fp8 e4m3
//   slots          [num_tokens] int64, page * page_size + row; negative: the token is skipped
//
// Strides other than the last and the page size are free; offsets are 64-bit. The bits are those of
// backends/cpu/append_kv.cpp: equal types are copied, other conversions round to nearest even, fp8
// is value / scale (an IEEE division: do not compile with -use_fast_math) and saturates. Two tokens
// with one slot race. Rows of skipped tokens may be loaded but are not stored. One launch stores K
// and V.
//
// One instance serves all types, widths and layouts: each is a branch that all threads of a warp
// take alike, a few instructions beside 8 elements. The kernel is bound by memory. Predicted
// traffic per token and head: (dim_k + dim_v) * (size_from + size_to) bytes, and 8 bytes for the
// slot (L2). 4096 tokens, 8 heads, depth 128, bf16 to bf16: 33.6 MB, 7.8 us at the 4.28 TB/s that a
// copy reaches on an H200; to fp8: 25.2 MB, 5.9 us. 64 tokens: 0.5 MB, 0.1 us: there the launch is
// the limit. Where a row or a pointer is not aligned to 16 bytes, accesses are narrower, down to
// one element.
#pragma once

#include <cstdint>

#include "arch/memory.hpp"
#include "arch/thread.hpp"
#include "kernels/append_kv/append_kv_params.hpp"
#include "kernels/common/elements.hpp"

namespace pagoda::kernels {

// `warp`: lanes of a warp, 32 or (AMD) 64.
template <int warp>
struct AppendKVRows {
  using Params = AppendKVParams;
  struct Storage {};
  static constexpr int kThreads = 2 * kAppendKVThreadsPerSide;  // the first half: K, the second: V
  static constexpr int kWarpSize = warp, kClusterSize = 1, kMinArch = 80;

  static PAGODA_DEVICE void run(const Params& params) {
    const int thread = arch::thread_idx() % kAppendKVThreadsPerSide;
    const AppendKVSide& side = params.sides[arch::warp_idx() * warp / kAppendKVThreadsPerSide];
    const int rows = kAppendKVThreadsPerSide >> params.lanes_log2;  // that the CTA stores at a time
    const int row = thread >> params.lanes_log2;
    const int lane = thread & ((1 << params.lanes_log2) - 1);
    for (int64_t block = arch::block_idx().x; block < params.num_blocks;
         block += arch::grid_dim().x) {
      const int64_t token = block / params.num_heads * rows + row;
      if (token >= params.num_tokens) continue;
      const auto head = static_cast<int32_t>(block % params.num_heads);
      const Row source{.data = side.from.as<const uint8_t>() + token * side.from_token_stride +
                               head * side.from_head_stride,
                       .slot = arch::load_read_only(params.slots + token),
                       .head = head,
                       .lane = lane};
      switch (side.chunk) {
        case 8: append_row<8>(params, side, source); break;
        case 4: append_row<4>(params, side, source); break;
        case 2: append_row<2>(params, side, source); break;
        default: append_row<1>(params, side, source); break;
      }
    }
  }

 private:
  // The new row of one token and head, and which of the lanes that share it this thread is.
  struct Row {
    arch::GlobalPtr<const uint8_t> data;
    int64_t slot;
    int32_t head;
    int32_t lane;
  };
  // N elements, not converted; elements of 2 bytes fill the first half.
  template <int N>
  using Chunk = RawElements<4 * N>;

  template <int N>
  static PAGODA_DEVICE void append_row(const Params& params, const AppendKVSide& side,
                                       const Row& row) {
    const int32_t step = N << params.lanes_log2;
    const int32_t from_size = params.from == DType::kF32 ? 4 : 2;
    for (int32_t i = row.lane * N; i < side.dim; i += step) {
      // Loaded before the slot is tested, so that both loads are in flight together.
      const Chunk<N> chunk = load_chunk<N>(row.data + int64_t{i} * from_size, from_size);
      if (row.slot < 0) return;
      write_chunk<N>(params, side, row, i, chunk);
    }
  }

  template <int N>
  static PAGODA_DEVICE Chunk<N> load_chunk(arch::GlobalPtr<const uint8_t> from, int32_t size) {
    return size == 4 ? load_raw<4 * N>(from) : widen<N>(load_raw<2 * N>(from));
  }

  template <int N>
  static PAGODA_DEVICE void write_chunk(const Params& params, const AppendKVSide& side,
                                        const Row& row, int32_t column, const Chunk<N>& chunk) {
    const arch::GlobalPtr<uint8_t> to =
        side.to.as<uint8_t>() + row.slot / params.page_size * side.to_page_stride +
        row.slot % params.page_size * side.to_row_stride + row.head * side.to_head_stride;
    const int64_t at = column;
    if (params.from == params.to) {  // a copy: not even a NaN changes
      if (params.from == DType::kF32) {
        store_raw<4 * N>(to + 4 * at, chunk);
      } else {
        store_raw<2 * N>(to + 2 * at, narrow<N>(chunk));
      }
      return;
    }
    float values[N];
    switch (params.from) {
      case DType::kF32: to_floats<DType::kF32>(chunk, values); break;
      case DType::kF16: to_floats<DType::kF16>(narrow<N>(chunk), values); break;
      default: to_floats<DType::kBF16>(narrow<N>(chunk), values); break;
    }
    switch (params.to) {
      case DType::kF32: store_floats<DType::kF32>(to + 4 * at, values); return;
      case DType::kF16: store_floats<DType::kF16>(to + 2 * at, values); return;
      case DType::kBF16: store_floats<DType::kBF16>(to + 2 * at, values); return;
      default: store_floats<DType::kF8E4M3>(to + at, values, scale_of(side, row.head)); return;
    }
  }

  static PAGODA_DEVICE float scale_of(const AppendKVSide& side, int32_t head) {
    return side.scale_per_head != nullptr
               ? arch::load_read_only(side.scale_per_head + head * side.scale_stride)
               : side.scale;
  }

  template <int N>
  static PAGODA_DEVICE Chunk<N> widen(const RawElements<2 * N>& half) {
    Chunk<N> chunk{};
    PAGODA_UNROLL
    for (int i = 0; i < half.kWords; ++i) chunk.word[i] = half.word[i];
    return chunk;
  }
  template <int N>
  static PAGODA_DEVICE RawElements<2 * N> narrow(const Chunk<N>& chunk) {
    RawElements<2 * N> half;
    PAGODA_UNROLL
    for (int i = 0; i < half.kWords; ++i) half.word[i] = chunk.word[i];
    return half;
  }
};

using AppendKVKernel = AppendKVRows<32>;

}  // namespace pagoda::kernels
