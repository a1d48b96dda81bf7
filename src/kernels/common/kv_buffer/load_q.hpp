// Loads the rows of Q of a work tile into shared memory, by all threads of the CTA. Rows that hold
// no query, and columns past the head dim, are zeros.
#pragma once

#include <cstdint>

#include "arch/thread.hpp"
#include "kernels/common/kv_buffer/storage.hpp"
#include "operand/vector_load.hpp"

namespace pagoda::kernels::kv_buffer {

template <class Config>
PAGODA_DEVICE void load_q(const AttentionParams& params, Storage<Config>& storage,
                          const Work& work) {
  using Ops = Operands<Config>;
  using T = typename Config::T;
  constexpr TileConfig tile = Config::tile;
  constexpr int chunks = tile.depth_qk / 8;
  constexpr int vectors = tile.BM * chunks;
  constexpr int in_flight = 4;  // loads that a thread issues before it waits for the first
  const RowsView& rows = params.q_rows;
  const bool is_aligned = params.q_data.address() % 16 == 0 &&
                          ((rows.sequence_stride | rows.row_stride | rows.head_stride) & 7) == 0;
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
      const auto [token, head] = token_and_head<tile.row_map()>(work, row);
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
