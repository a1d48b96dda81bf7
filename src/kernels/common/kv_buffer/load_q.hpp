// Loads of the rows of Q of a work tile. Rows that hold no query, and columns past the head dim,
// are zeros.
#pragma once

#include <cstdint>

#include "arch/thread.hpp"
#include "kernels/common/kv_buffer/storage.hpp"
#include "operand/vector_load.hpp"

namespace pagoda::kernels::kv_buffer {

// Rows of 16-bit elements that start at multiples of 16 bytes.
[[nodiscard]] PAGODA_DEVICE bool has_aligned_rows(uint64_t address, const RowsView& rows) {
  return address % 16 == 0 &&
         ((rows.sequence_stride | rows.row_stride | rows.head_stride) & 7) == 0;
}
[[nodiscard]] PAGODA_DEVICE bool is_q_aligned(const AttentionParams& params) {
  return has_aligned_rows(params.q_data.address(), params.q_rows);
}

template <class Config>
PAGODA_DEVICE TokenAndHead q_token_and_head(const Work& work, int row) {
  constexpr bool is_packed = Config::tile.is_token_generation();
  if (is_packed && work.num_tokens == 1) {  // a division less
    return TokenAndHead{work.first_token, work.first_head + row};
  }
  return token_and_head<Config::tile.row_map()>(work, row);
}

template <class Config>
class QRows {
 public:
  using T = typename Config::T;
  static constexpr TileConfig tile = Config::tile;

  PAGODA_DEVICE QRows(const AttentionParams& params, const Work& work)
      : params_(params),
        work_(work),
        is_aligned_(is_q_aligned(params)),
        valid_rows_(work.valid_tokens * (tile.is_token_generation() ? work.num_heads : 1)) {}

  // Eight elements from `column` on.
  [[nodiscard]] PAGODA_DEVICE arch::Words<4> load(int row, int column) const {
    if (row >= valid_rows_ || column >= params_.dim_qk) return {{0, 0, 0, 0}};
    const auto [token, head] = q_token_and_head<Config>(work_, row);
    const arch::GlobalPtr<const T> from =
        params_.q_data.template as<const T>() +
        (params_.q_rows.offset(work_.sequence, work_.memory_row + token, head) + column);
    return operand::load_vector<2>(from.template as<const char>(), params_.dim_qk - column,
                                   is_aligned_);
  }

 private:
  const AttentionParams& params_;
  const Work& work_;
  bool is_aligned_;
  int32_t valid_rows_;
};

// Into shared memory, by all threads of the CTA.
template <class Config>
PAGODA_DEVICE void load_q(const AttentionParams& params, Storage<Config>& storage,
                          const Work& work) {
  using Ops = Operands<Config>;
  constexpr TileConfig tile = Config::tile;
  constexpr int chunks = tile.depth_qk / 8;
  constexpr int vectors = tile.BM * chunks;
  // Loads that a thread issues before it waits for the first.
  constexpr int in_flight = vectors >= 4 * Ops::threads ? 4 : vectors >= 2 * Ops::threads ? 2 : 1;
  const QRows<Config> rows(params, work);
  PAGODA_NO_UNROLL
  for (int first = arch::thread_idx(); first < vectors; first += in_flight * Ops::threads) {
    arch::Words<4> values[in_flight];
    PAGODA_UNROLL
    for (int i = 0; i < in_flight; ++i) {
      const int index = first + i * Ops::threads;
      values[i] = rows.load(index / chunks, index % chunks * 8);
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

// A function of its own: code that most calls do not run.
template <class Config>
PAGODA_DEVICE_CALL void call_load_q(const AttentionParams& params, Storage<Config>& storage) {
  load_q<Config>(params, storage, storage.work.load());
}

}  // namespace pagoda::kernels::kv_buffer
