// Loads the rows of Q of a work tile into shared memory, by all threads of the CTA. Rows that hold
// no query, and columns past the head dim, are zeros.
#pragma once

#include <cstdint>

#include "arch/cp_async.hpp"
#include "arch/thread.hpp"
#include "kernels/common/kv_buffer/storage.hpp"
#include "operand/vector_load.hpp"

namespace pagoda::kernels::kv_buffer {

[[nodiscard]] PAGODA_DEVICE bool is_q_aligned(const AttentionParams& params) {
  const RowsView& rows = params.q_rows;
  return params.q_data.address() % 16 == 0 &&
         ((rows.sequence_stride | rows.row_stride | rows.head_stride) & 7) == 0;
}

// The same by cp.async, in the thread's next group. False: rows are not aligned to 16 bytes, or
// shorter than the padded head dim.
template <class Config>
PAGODA_DEVICE bool load_q_async(const AttentionParams& params, Storage<Config>& storage,
                                const Work& work) {
  using Ops = Operands<Config>;
  using T = typename Config::T;
  constexpr TileConfig tile = Config::tile;
  constexpr int rows_at_once = Ops::threads / 8;  // eight threads copy 128 bytes of a row
  constexpr int row_stride = Ops::q_layout.row_stride();
  constexpr int chunk_stride = Ops::q_layout.chunk_stride();
  if (params.dim_qk != tile.depth_qk || !is_q_aligned(params)) return false;
  const arch::GlobalPtr<const T> data = params.q_data.template as<const T>();
  const int32_t valid_rows = work.valid_tokens * (Ops::token_gen ? work.num_heads : 1);
  const int thread_row = arch::thread_idx() / 8, thread_chunk = arch::thread_idx() % 8;
  const arch::SharedPtr<T> to =
      storage.q.at(operand::vector_index<Ops::q_layout>(thread_row, thread_chunk) * 8);
  PAGODA_UNROLL
  for (int i = 0; i < tile.BM; i += rows_at_once) {
    const int row = thread_row + i;
    arch::GlobalPtr<const T> from = data;
    if (row < valid_rows) {
      const auto [token, head] = Ops::token_gen && work.num_tokens == 1  // a division less
                                     ? TokenAndHead{work.first_token, work.first_head + row}
                                     : token_and_head<tile.row_map()>(work, row);
      from = data + (params.q_rows.offset(work.sequence, work.memory_row + token, head) +
                     thread_chunk * 8);
    }
    PAGODA_UNROLL
    for (int j = 0; j < tile.depth_qk / 8; j += 8) {
      arch::cp_async<16>(to + (i * row_stride + j * chunk_stride) * 8, from + j * 8,
                         row < valid_rows ? 16 : 0);
    }
  }
  return true;
}

template <class Config>
PAGODA_DEVICE void load_q(const AttentionParams& params, Storage<Config>& storage,
                          const Work& work) {
  using Ops = Operands<Config>;
  using T = typename Config::T;
  constexpr TileConfig tile = Config::tile;
  constexpr int chunks = tile.depth_qk / 8;
  constexpr int vectors = tile.BM * chunks;
  // Loads that a thread issues before it waits for the first.
  constexpr int in_flight = vectors >= 4 * Ops::threads ? 4 : vectors / Ops::threads;
  static_assert(in_flight > 0);
  const RowsView& rows = params.q_rows;
  const bool is_aligned = is_q_aligned(params);
  const int32_t valid_rows = work.valid_tokens * (Ops::token_gen ? work.num_heads : 1);
  PAGODA_NO_UNROLL
  for (int first = arch::thread_idx(); first < vectors; first += in_flight * Ops::threads) {
    arch::Words<4> values[in_flight];
    PAGODA_UNROLL
    for (int i = 0; i < in_flight; ++i) {
      const int index = first + i * Ops::threads;
      const int row = index / chunks, column = index % chunks * 8;
      values[i] = {{0, 0, 0, 0}};
      if (row >= valid_rows || column >= params.dim_qk) continue;
      const auto [token, head] = Ops::token_gen && work.num_tokens == 1  // a division less
                                     ? TokenAndHead{work.first_token, work.first_head + row}
                                     : token_and_head<tile.row_map()>(work, row);
      const arch::GlobalPtr<const T> from =
          params.q_data.template as<const T>() +
          (rows.offset(work.sequence, work.memory_row + token, head) + column);
      values[i] = operand::load_vector<2>(from.template as<const char>(), params.dim_qk - column,
                                          is_aligned);
    }
    PAGODA_UNROLL
    for (int i = 0; i < in_flight; ++i) {
      const int index = first + i * Ops::threads;
      if (index >= vectors) break;
      const int at = operand::vector_index<Ops::q_layout>(index / chunks, index % chunks) * 8;
      arch::store(storage.q.at(at).template as<arch::Words<4>>(), values[i]);
    }
  }
}

}  // namespace pagoda::kernels::kv_buffer
