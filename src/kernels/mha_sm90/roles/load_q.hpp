// The load role of Q: a warp. Tiles of tokens come by TMA, packed rows by the lanes, 16 bytes each: they
// are rows of several heads and tokens. Where K and V are gathered no warp is left: the consumer brings
// its Q.
#pragma once

#include <cstdint>

#include "arch/fence.hpp"
#include "arch/thread.hpp"
#include "arch/tma.hpp"
#include "arch/warp.hpp"
#include "kernels/mha_sm90/request_order.hpp"
#include "kernels/mha_sm90/storage.hpp"

namespace pagoda::mha_sm90 {

// Rows past the sequence's end are another's, or zeros: nobody looks at what becomes of them.
template <class Config>
PAGODA_DEVICE void load_tokens(const AttentionParams& params, Storage<Config>& storage,
                               const Work& work, const typename Operands<Config>::QRing& ring,
                               int warpgroup, int32_t elect) {
  using Ops = Operands<Config>;
  arch::MBarrier& full = ring.producer_mbar();
  const auto place = storage.q_place(ring.state.index, warpgroup);
  arch::syncwarp();  // every lane has seen that the place is free
  full.arrive_expect_tx_if(elect, Ops::q_elements * sizeof(typename Config::T));
  const bool is_ragged = params.sequences.cu_rows != nullptr;
  const int32_t row = work.first_token + warpgroup * kRows + (is_ragged ? work.memory_row : 0);
  PAGODA_UNROLL
  for (int column = 0; column < Config::tile.depth_qk; column += Ops::chunk) {
    arch::tma_load<4>(elect, place + column * kRows, params.q,
                      {{column, work.first_head, row, is_ragged ? 0 : work.sequence}}, full,
                      arch::Eviction::kFirst);
  }
}

// Whether 8 elements of any row of Q can be loaded at once.
PAGODA_DEVICE bool has_aligned_rows(const AttentionParams& params) {
  const kernels::RowsView& rows = params.q_rows;
  return params.q_data.address() % 16 == 0 &&
         ((rows.sequence_stride | rows.row_stride | rows.head_stride) & 7) == 0;
}

// 8 elements. (Whoever loads several asks for their alignment once, before: a branch at each load would
// have the thread wait for one after the other.)
template <bool is_aligned, class T>
PAGODA_DEVICE arch::Words<4> load_words(arch::GlobalPtr<const T> from) {
  if constexpr (is_aligned) {
    return arch::load_read_only(from.template as<const arch::Words<4>>());
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

// Zeros in columns past the head dim. Rows that are nobody's keep what was there: each row of the
// product is its own, and theirs is not looked at. By `threads` threads, each of which then executes the
// fence; what follows tells the consumer.
template <class Config, int threads>
class PackedLoad {
 public:
  using Ops = Operands<Config>;
  using T = typename Config::T;

  static PAGODA_DEVICE void run(const AttentionParams& params, Storage<Config>& storage,
                                const Work& work, RequestOrder<Config>& order) {
    if (has_aligned_rows(params)) {
      copy<true, threads == 32 ? 4 : 1>(params, storage, work, order);
    } else {
      copy<false, 1>(params, storage, work, order);
    }
    order.q_is_requested();            // rows that hold no query ask for nothing
    arch::fence_proxy_async_shared();  // Q, before wgmma reads it
  }

 private:
  static constexpr int words = Config::tile.depth_qk / 8;  // of a row, of 8 elements

  // in_flight: loads of a thread before it waits for the first.
  template <bool is_aligned, int in_flight>
  static PAGODA_DEVICE void copy(const AttentionParams& params, Storage<Config>& storage,
                                 const Work& work, RequestOrder<Config>& order) {
    const int end = work.valid_tokens * work.num_heads * words;
    PAGODA_NO_UNROLL
    for (int round = 0; round < end; round += in_flight * threads) {
      const int first = round + arch::thread_idx() % threads;
      arch::Words<4> values[in_flight];
      PAGODA_UNROLL
      for (int k = 0; k < in_flight; ++k) {
        values[k] = load<is_aligned>(params, work, first + k * threads, end);
      }
      order.q_is_requested();
      PAGODA_UNROLL
      for (int k = 0; k < in_flight; ++k) {
        if (first + k * threads < end) store(storage, first + k * threads, values[k]);
      }
    }
  }
  template <bool is_aligned>
  static PAGODA_DEVICE arch::Words<4> load(const AttentionParams& params, const Work& work, int i,
                                           int end) {
    const int row = i / words, column = i % words * 8;
    if (i >= end || column >= params.dim_qk) return {{0, 0, 0, 0}};
    const int64_t token = work.memory_row + work.first_token + row / work.num_heads;
    const int32_t head = work.first_head + row % work.num_heads;
    return load_words<is_aligned>(params.q_data.template as<const T>() +
                                  params.q_rows.offset(work.sequence, token, head) + column);
  }
  static PAGODA_DEVICE void store(Storage<Config>& storage, int i, const arch::Words<4>& value) {
    const int row = i / words, column = i % words * 8;
    const auto base = storage.q.data();
    const auto dense = static_cast<uint32_t>(
        ((column / Ops::chunk * kRows + row) * Ops::chunk + column % Ops::chunk) * sizeof(T));
    const uint32_t place =
        swizzle_address(base.address() + dense, Config::tile.swizzle) - base.address();
    arch::store((base + static_cast<int32_t>(place / sizeof(T))).template as<arch::Words<4>>(),
                value);
  }
};

template <class Config>
PAGODA_DEVICE void load_q(const AttentionParams& params, Storage<Config>& storage) {
  const int32_t elect = arch::elect_one();
  using QRing = typename Operands<Config>::QRing;
  auto state = QRing::State::producer();
  RequestOrder<Config> order(storage);
  WorkReader reader(storage.work);
  for (; reader.next(); reader.release()) {
    const Work work = reader.work();
    if (work.walk.num_tiles == 0) {
      order.q_is_requested();
      continue;
    }
    for (int w = 0; w < Config::tile.num_consumers; ++w) {
      const QRing ring{storage.q_ring[w], state};
      ring.producer_acquire();  // the consumer needs its place no longer
      if constexpr (Config::tile.rows == RowKind::kTokens) {
        load_tokens<Config>(params, storage, work, ring, w, elect);
      } else {
        static_assert(Config::tile.num_consumers == 1, "packed rows are one consumer's");
        PackedLoad<Config, 32>::run(params, storage, work, order);
        arch::syncwarp();
        ring.producer_mbar().arrive_if(elect);
      }
    }
    state.step();
  }
}

}  // namespace pagoda::mha_sm90
