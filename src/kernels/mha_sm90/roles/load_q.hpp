// load_q: the role that loads Q, a warp. TMA loads tiles of tokens, and latent rows; the lanes load
// other packed rows, 16 bytes at a time, which belong to several heads and tokens. Where K and V
// are gathered no producer warp is left, and the consumer runs PackedLoad itself.
#pragma once

#include <cstdint>

#include "arch/fence.hpp"
#include "arch/thread.hpp"
#include "arch/tma.hpp"
#include "arch/warp.hpp"
#include "kernels/mha_sm90/q_before_kv.hpp"
#include "kernels/mha_sm90/storage.hpp"

namespace pagoda::mha_sm90 {

// Copies 64 tokens of one head, or a RowBlock. Tokens past the sequence's end are those of the next
// sequence, or zeros; their results are not stored. Empty rows of a block keep what the stage held.
template <class Config>
PAGODA_DEVICE void load_tokens(const AttentionParams& params, Storage<Config>& storage,
                               const Work& work, const typename Operands<Config>::QRing& ring,
                               int warpgroup, int32_t elect) {
  using Ops = Operands<Config>;
  arch::MBarrier& full = ring.producer_mbar();
  const auto to = storage.q_at(ring.state.index, warpgroup);
  arch::syncwarp();  // every lane has returned from the wait for q empty: TMA may overwrite it
  constexpr int row_bytes = Config::tile.depth_qk * sizeof(typename Config::T);
  const auto bytes = static_cast<uint32_t>(rows_of_consumer<Config>(params) * row_bytes);
  full.arrive_expect_tx_if(elect, bytes);
  const bool is_ragged = params.sequences.cu_rows != nullptr;
  const int32_t row = work.first_token + warpgroup * tokens_of_consumer<Config>(params) +
                      (is_ragged ? work.memory_row : 0);
  PAGODA_UNROLL
  for (int column = 0; column < Config::tile.depth_qk; column += Ops::chunk) {
    arch::tma_load<4>(elect, to + column * kRows, params.q,
                      {{column, work.first_head, row, is_ragged ? 0 : work.sequence}}, full,
                      arch::Eviction::kFirst);
  }
}

// Whether every row of Q is aligned to 16 bytes, and of 8-bit elements has a multiple of 16.
template <class T>
PAGODA_DEVICE bool has_aligned_rows(const AttentionParams& params) {
  constexpr int mask = 16 / sizeof(T) - 1;
  const kernels::RowsView& rows = params.q_rows;
  return params.q_data.address() % 16 == 0 && (sizeof(T) == 2 || (params.dim_qk & mask) == 0) &&
         ((rows.sequence_stride | rows.row_stride | rows.head_stride) & mask) == 0;
}

// Loads 16 bytes. `left`: elements of the row, which where not aligned may be 8 of 16. `is_aligned`
// is a template argument because a branch at every load would make the thread wait for each load in
// turn.
template <bool is_aligned, class T>
PAGODA_DEVICE arch::Words<4> load_words(arch::GlobalPtr<const T> from, int left) {
  if constexpr (is_aligned) {
    return arch::load_read_only(from.template as<const arch::Words<4>>());
  } else if constexpr (sizeof(T) == 1) {
    const auto elements = from.template as<const uint8_t>();
    arch::Words<4> value{{0, 0, 0, 0}};
    PAGODA_UNROLL
    for (int i = 0; i < 16; ++i) {
      if (i >= left) break;
      value.word[i / 4] |= static_cast<uint32_t>(arch::load_read_only(elements + i))
                           << 8U * (i % 4);
    }
    return value;
  } else {
    const auto elements = from.template as<const uint16_t>();
    arch::Words<4> value;
    PAGODA_UNROLL
    for (int i = 0; i < 4; ++i) {
      value.word[i] = arch::load_read_only(elements + 2 * i) |
                      static_cast<uint32_t>(arch::load_read_only(elements + 2 * i + 1)) << 16U;
    }
    return value;
  }
}

// Loads packed rows of Q by `threads` threads, with zeros in columns past the head dim. Padding
// rows keep stale data: it only changes their own scores, which are not stored. A proxy fence must
// follow before wgmma reads them.
template <class Config, int threads>
class PackedLoad {
 public:
  using Ops = Operands<Config>;
  using T = typename Config::T;

  static PAGODA_DEVICE void run(const AttentionParams& params, Storage<Config>& storage,
                                const Work& work, QBeforeKV<Config>& order) {
    if (has_aligned_rows<T>(params)) {
      copy<true, threads == 32 ? 4 : 1>(params, storage, work, order);
    } else {
      copy<false, 1>(params, storage, work, order);
    }
    order.arrive_q_issued();  // here where there is no row to load
  }

 private:
  static constexpr int elements = 16 / sizeof(T);                 // of a 16-byte word
  static constexpr int words = Config::tile.depth_qk / elements;  // of a row

  // in_flight: loads that a thread issues before it waits for the first.
  template <bool is_aligned, int in_flight>
  static PAGODA_DEVICE void copy(const AttentionParams& params, Storage<Config>& storage,
                                 const Work& work, QBeforeKV<Config>& order) {
    const int end = work.valid_tokens * work.num_heads * words;
    PAGODA_NO_UNROLL
    for (int round = 0; round < end; round += in_flight * threads) {
      const int first = round + arch::thread_idx() % threads;
      arch::Words<4> values[in_flight];
      PAGODA_UNROLL
      for (int k = 0; k < in_flight; ++k) {
        values[k] = load<is_aligned>(params, work, first + k * threads, end);
      }
      order.arrive_q_issued();
      PAGODA_UNROLL
      for (int k = 0; k < in_flight; ++k) {
        if (first + k * threads < end) store(storage, first + k * threads, values[k]);
      }
    }
  }
  template <bool is_aligned>
  static PAGODA_DEVICE arch::Words<4> load(const AttentionParams& params, const Work& work, int i,
                                           int end) {
    const int row = i / words, column = i % words * elements;
    if (i >= end || column >= params.dim_qk) return {{0, 0, 0, 0}};
    const int64_t token = work.memory_row + work.first_token + row / work.num_heads;
    const int32_t head = work.first_head + row % work.num_heads;
    return load_words<is_aligned>(params.q_data.template as<const T>() +
                                      params.q_rows.offset(work.sequence, token, head) + column,
                                  params.dim_qk - column);
  }
  static PAGODA_DEVICE void store(Storage<Config>& storage, int i, const arch::Words<4>& value) {
    const int row = i / words, column = i % words * elements;
    const auto base = storage.q.data();
    const uint32_t dense = Ops::panel_offset(kRows, row, column);
    const uint32_t offset =
        swizzle_address(base.address() + dense, Config::tile.swizzle) - base.address();
    arch::store((base + static_cast<int32_t>(offset / sizeof(T))).template as<arch::Words<4>>(),
                value);
  }
};

template <class Config>
PAGODA_DEVICE void load_q(const AttentionParams& params, Storage<Config>& storage) {
  const int32_t elect = arch::elect_one();
  using QRing = typename Operands<Config>::QRing;
  auto state = QRing::State::producer();
  QBeforeKV<Config> order(storage);
  WorkReader reader(storage.work);
  for (; reader.next(); reader.release()) {
    const Work work = reader.work();
    if (work.walk.num_tiles == 0) {
      order.arrive_q_issued();
      continue;
    }
    for (int w = 0; w < Config::tile.num_consumers; ++w) {
      const QRing ring{storage.q_ring[w], state};
      ring.producer_acquire();  // the consumer's four warps have released the stage
      if constexpr (Config::tile.rows == RowKind::kTokens || Config::tile.is_latent) {
        load_tokens<Config>(params, storage, work, ring, w, elect);
        order.arrive_q_issued();
      } else {
        static_assert(Config::tile.num_consumers == 1, "packed rows have one consumer");
        PackedLoad<Config, 32>::run(params, storage, work, order);
        arch::fence_proxy_async_shared();  // orders this thread's stores of Q before wgmma reads Q
        arch::syncwarp();  // every lane has stored its part of Q and executed the fence
        ring.producer_mbar().arrive_if(elect);
      }
    }
    if constexpr (OwnTilesOf<Config>::are_found_by_load_q) {
      // While Q is on its way.
      for (int w = 0; w < Config::tile.num_consumers; ++w) {
        const OwnTiles own = OwnTilesOf<Config>::find(params, work, w);
        if (elect != 0) arch::store(storage.own_tiles_at(state.index, w), own);
        QRing{storage.q_ring[w], state}.producer_mbar().arrive_if(elect);
      }
    }
    state.step();
  }
}

}  // namespace pagoda::mha_sm90
