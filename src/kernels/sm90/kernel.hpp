// The Hopper attention kernel: who does what. A warpgroup of loaders, one to three of consumers.
#pragma once

#include "arch/debug.hpp"
#include "arch/register_budget.hpp"
#include "kernels/sm90/attend.hpp"
#include "kernels/sm90/load.hpp"
#include "kernels/sm90/partial.hpp"
#include "kernels/sm90/store.hpp"

namespace pagoda::sm90 {

template <class Config>
struct Kernel {
  using Params = AttentionParams;
  using Storage = sm90::Storage<Config>;
  static constexpr TileConfig tile = Config::tile;
  static constexpr int kThreads = tile.threads();
  static constexpr int kClusterSize = 1, kMinArch = 90, kMaxArch = 90;
  static constexpr int kCtasPerSm = tile.ctas_per_sm;
  // Of a thread at launch: what the register file holds (setmaxnreg moves them afterwards).
  static constexpr int kRegisters = 65536 / (kThreads * kCtasPerSm) / 8 * 8;

  static PAGODA_DEVICE void run(const Params& params) {
    auto& storage = arch::shared_storage<Storage>();
    init_barriers(storage);
    if constexpr (tile.rows == RowKind::kPacked) {
      const ShareStart start = find_share<Config>(params, storage.share);
      run_roles(params, storage, ShareWork<Config>(params, start));
    } else {
      run_roles(params, storage, GridWork<Config>(params));
    }
  }

 private:
  using Ops = Operands<Config>;

  static PAGODA_DEVICE void init_barriers(Storage& storage) {
    if (arch::thread_idx() == 0) {
      Ops::KRing::init(storage.k_ring, Ops::releases, "k");
      Ops::VRing::init(storage.v_ring, Ops::releases, "v");
      for (int w = 0; w < tile.num_consumers; ++w) {
        storage.q_ring[w][0].init(1);
        storage.q_ring[w][1].init(1);
        arch::name_barrier(storage.q_ring[w][0], "q full", w);
        arch::name_barrier(storage.q_ring[w][1], "q empty", w);
      }
      storage.v_tail.init(1);
      arch::name_barrier(storage.v_tail, "v tail");
      arch::fence_mbarrier_init();
    }
    arch::syncthreads();
  }

  template <class Scheduler>
  static PAGODA_DEVICE void run_roles(const Params& params, Storage& storage,
                                      const Scheduler& scheduler) {
    if (arch::warpgroup_idx() == 0) {
      arch::register_budget_decrease<tile.producer_registers>();
      load(params, storage, scheduler);
    } else {
      arch::register_budget_increase<tile.consumer_registers>();
      consume(params, storage, scheduler);
    }
  }

  template <class Scheduler>
  static PAGODA_DEVICE void load(const Params& params, Storage& storage, const Scheduler& scheduler) {
    const int page_size = params.sequences.keys.paged_size();
    const int warp = arch::warp_idx();
    if (warp == 0) {
      const arch::Role role("load k");
      dispatch_page_size<tile.BN>(page_size, [&]<int size>() {
        load_k<Config, size>(params, storage, scheduler);
      });
    } else if (warp == 1) {
      const arch::Role role("load v");
      dispatch_page_size<tile.BN>(page_size, [&]<int size>() {
        load_v<Config, size>(params, storage, scheduler);
      });
    }
  }

  template <class Scheduler>
  static PAGODA_DEVICE void consume(const Params& params, Storage& storage, Scheduler scheduler) {
    const arch::Role role("consume");
    const int warpgroup = arch::warpgroup_idx() - 1;
    Attend<Config> attend(params, storage, warpgroup);
    attend.begin_turns();
    uint32_t q_phase = 0;
    for (Work work; scheduler.next(work);) {
      const int lane = arch::lane_idx();
      const int first = warpgroup * kRows + 16 * (arch::warp_idx() % 4) + lane / 4;
      Row rows[2] = {make_row<Config>(params, work, first), make_row<Config>(params, work, first + 8)};
      float o[tile.depth_vo / 2];
      const bool has_keys = work.walk.num_tiles > 0;
      if (has_keys) {
        if constexpr (tile.rows == RowKind::kTokens) {
          storage.q_ring[warpgroup][0].wait(q_phase);  // the load warp's Q has landed
        } else {
          place_q(params, storage, work, warpgroup);
        }
        attend.run(work, rows, o);
      }
      finish_rows(rows);
      if (work.is_split()) {
        Partial<Config>(params, storage, warpgroup).run(work, rows, o);
      } else {
        Store<Config>(params, storage, warpgroup).run(work, rows, o);
      }
      if (has_keys && tile.rows == RowKind::kTokens) {
        Store<Config>(params, storage, warpgroup).free_q();
        q_phase ^= 1U;
      }
    }
    attend.end_turns();
  }

  // The lanes of a row have summed their own columns.
  static PAGODA_DEVICE void finish_rows(Row (&rows)[2]) {
    PAGODA_UNROLL
    for (int r = 0; r < 2; ++r) {
      const softmax::Sums own = rows[r].online.sums();
      rows[r].sums = softmax::Sums{own.pivot, sum_of_quad(own.sum)};
    }
  }

  // Packed rows, by the warpgroup itself: 16 bytes a thread; zeros in rows and columns that do not
  // exist.
  static PAGODA_DEVICE void place_q(const Params& params, Storage& storage, const Work& work,
                                    int warpgroup) {
    using T = typename Config::T;
    constexpr int words = tile.depth_qk / 8;  // of a row
    const auto base = storage.q.at(warpgroup * Ops::q_elements);
    // The products of every warp have read the Q before.
    sync_warpgroup(warpgroup);
    for (int i = arch::thread_idx() % kWarpgroup; i < kRows * words; i += kWarpgroup) {
      const int row = i / words, column = i % words * 8;
      const int token = (warpgroup * kRows + row) / work.num_heads;
      const int head = (warpgroup * kRows + row) % work.num_heads;
      arch::Words<4> value{{0, 0, 0, 0}};
      if (token < work.valid_tokens && column < params.dim_qk) {
        value = load_query(static_cast<const T*>(params.q_data) +
                           params.q_rows.offset(work.sequence,
                                                work.memory_row + work.first_token + token,
                                                work.first_head + head) +
                           column);
      }
      const uint32_t dense = static_cast<uint32_t>(
          ((column / Ops::chunk * kRows + row) * Ops::chunk + column % Ops::chunk) * sizeof(T));
      const uint32_t place = swizzle_address(base.address() + dense, tile.swizzle) - base.address();
      arch::store((base + static_cast<int32_t>(place / sizeof(T))).template as<arch::Words<4>>(), value);
    }
    arch::fence_proxy_async_shared();  // Q, before wgmma reads it
    sync_warpgroup(warpgroup);
  }

  // 8 elements, as wide as their address allows.
  template <class T>
  static PAGODA_DEVICE arch::Words<4> load_query(const T* from) {
    if (reinterpret_cast<uintptr_t>(from) % 16 == 0) {
      return arch::load_read_only(reinterpret_cast<const arch::Words<4>*>(from));
    }
    const auto* const elements = reinterpret_cast<const uint16_t*>(from);
    arch::Words<4> value;
    PAGODA_UNROLL
    for (int i = 0; i < 4; ++i) {
      value.word[i] = arch::load_read_only(elements + 2 * i) |
                      static_cast<uint32_t>(arch::load_read_only(elements + 2 * i + 1)) << 16U;
    }
    return value;
  }
};

}  // namespace pagoda::sm90
