// Buffers that copy K and V by cp.async, and copies of Q by it.
#pragma once

#include <cstdint>

#include "arch/cp_async.hpp"
#include "arch/thread.hpp"
#include "kernels/common/kv_buffer/load_q.hpp"
#include "kernels/common/kv_buffer/storage.hpp"
#include "operand/async_kv_buffer.hpp"

namespace pagoda::kernels::kv_buffer {

template <class Sizes>
struct Buffers<Sizes, Staging::kAsync> {
  static constexpr TileConfig tile = Sizes::tile;
  using K = operand::AsyncKVBuffer<Sizes::k_config, typename Sizes::KCore, tile.BN, tile.WN(),
                                   tile.k_BK, Sizes::threads, tile.k_tiles>;
  using V = operand::AsyncKVBuffer<Sizes::v_config, typename Sizes::VCore, tile.BN, tile.WN(),
                                   tile.v_BK, Sizes::threads, tile.v_tiles>;

  // The rows of Q into shared memory, in the thread's next group. False: rows are not aligned to 16
  // bytes, or shorter than the padded head dim.
  template <class Config>
  static PAGODA_DEVICE bool load_q(const AttentionParams& params, Storage<Config>& storage,
                                   const Work& work) {
    using Ops = Operands<Config>;
    using T = typename Config::T;
    constexpr int rows_at_once = Ops::threads / 8;  // eight threads copy 128 bytes of a row
    constexpr int row_stride = Ops::q_layout.row_stride();
    constexpr int chunk_stride = Ops::q_layout.chunk_stride();
    if (params.dim_qk != tile.depth_qk || !is_q_aligned(params)) return false;
    const arch::GlobalPtr<const T> data = params.q_data.template as<const T>();
    const int32_t valid_rows = work.valid_tokens * (Ops::token_gen ? work.num_heads : 1);
    const int thread_row = arch::thread_idx() / 8, thread_chunk = arch::thread_idx() % 8;
    const arch::SharedPtr<T> to =
        storage.q.at(operand::vector_index<Ops::q_layout>(thread_row, thread_chunk) * 8);
    // The thread's first row; rows of a prefill tile follow each other.
    const arch::GlobalPtr<const T> first =
        data + (params.q_rows.offset(work.sequence, work.memory_row + work.first_token + thread_row,
                                     work.first_head) +
                thread_chunk * 8);
    PAGODA_UNROLL
    for (int i = 0; i < tile.BM; i += rows_at_once) {
      const int row = thread_row + i;
      arch::GlobalPtr<const T> from = data;
      if (row < valid_rows) {
        if constexpr (Ops::token_gen) {
          const auto [token, head] = q_token_and_head<Config>(work, row);
          from = data + (params.q_rows.offset(work.sequence, work.memory_row + token, head) +
                         thread_chunk * 8);
        } else {
          from = first + i * params.q_rows.row_stride;
        }
      }
      PAGODA_UNROLL
      for (int j = 0; j < tile.depth_qk / 8; j += 8) {
        arch::cp_async<16>(to + (i * row_stride + j * chunk_stride) * 8, from + j * 8,
                           row < valid_rows ? 16 : 0);
      }
    }
    return true;
  }
};

// Decoding has loads of its own (DecodeLoads).
template <class Sizes>
struct Buffers<Sizes, Staging::kAsyncNarrow> : Buffers<Sizes, Staging::kAsync> {};

// K has V in it; only the sizes are used (LatentLoads).
template <class Sizes>
struct Buffers<Sizes, Staging::kAsyncLatent> : Buffers<Sizes, Staging::kAsync> {};

// Only the sizes are used: 128 keys of 8-bit elements take the memory of 64 keys of 16-bit ones.
// DecodeLoads and DecodeFp8 have the layout.
template <class Sizes>
struct Buffers<Sizes, Staging::kAsyncFp8> {
  static constexpr TileConfig tile = Sizes::tile;
  static constexpr int kKeys = tile.BN / 2, kKeysOfWarp = tile.WN() / 2, kVKeys = tile.v_BK / 2;
  using K = operand::AsyncKVBuffer<operand::KVBufferConfig::k(kKeys, kKeysOfWarp, tile.k_BK),
                                   typename Sizes::KCore, kKeys, kKeysOfWarp, tile.k_BK,
                                   Sizes::threads, tile.k_tiles>;
  using V =
      operand::AsyncKVBuffer<operand::KVBufferConfig::v(kKeys, kKeysOfWarp, kVKeys, tile.depth_vo),
                             typename Sizes::VCore, kKeys, kKeysOfWarp, kVKeys, Sizes::threads,
                             tile.v_tiles>;
};

}  // namespace pagoda::kernels::kv_buffer
