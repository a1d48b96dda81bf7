// The correction role: one warpgroup of each CTA rescales O in tensor memory when the maximum of a
// row has grown, and runs the epilogue. The epilogue normalises O and stores it by TMA, staged in
// the memory of Q, where all rows of the CTA's block exist, else from registers; or it stores the
// partial result of a KV split.
#pragma once

#include <cstdint>

#include "arch/debug.hpp"
#include "arch/fault.hpp"
#include "arch/fence.hpp"
#include "arch/named_barrier.hpp"
#include "arch/tcgen05.hpp"
#include "arch/thread.hpp"
#include "arch/warp.hpp"
#include "kernels/common/row_store.hpp"
#include "kernels/common/sm100/output.hpp"
#include "kernels/common/sm100/rescale.hpp"
#include "kernels/common/split_rows.hpp"
#include "kernels/mha_sm100_d512/roles/softmax.hpp"

namespace pagoda::mha_sm100_d512 {

template <class Config>
class Correction {
 public:
  using Ops = Operands<Config>;
  using T = typename Config::T;
  using Out = typename Config::Out;
  static constexpr TileConfig tile = Config::tile;
  static constexpr int batch = tile.out_batch();
  static constexpr bool shares_rows = tile.row_lanes() == 2;
  using Split = kernels::SplitRows<Out, tile.block_rows, kPair, tile.depth>;
  using Row = kernels::Row<softmax::RescaleLazily>;  // which row; the softmax warps send the sums
  // O is staged in the memory of Q. O of e4m3 queries is twice as wide and does not fit.
  static constexpr bool has_staging = sizeof(T) == sizeof(Out);
  static constexpr int out_panel_columns = 128 / static_cast<int>(sizeof(Out));

  PAGODA_DEVICE Correction(const AttentionParams& params, Storage<Config>& storage,
                           Tmem<Config> tmem, int rank)
      : params_(params),
        storage_(storage),
        tmem_{tmem.base.lanes(arch::tmem_first_lane_of_warp(arch::warp_idx()))},
        rank_(rank),
        lane_(arch::thread_idx() % kWarpgroup),
        factors_(FactorPipeline::consumer(storage.factor_ring)) {}

  PAGODA_DEVICE void run() {
    arrive_o_ready();  // O is free at the start
    WorkReader reader(storage_.work);
    for (; reader.next(); reader.release()) {
      // The first KV tile rescales nothing.
      PAGODA_NO_UNROLL
      for (int32_t i = reader.work().walk.num_tiles; i > 1; --i) rescale();
      epilogue(reader.work());
    }
  }

 private:
  // --- mainloop --------------------------------------------------------------------------------

  PAGODA_DEVICE void rescale() {
    const float factor = arch::mutable_value("O not rescaled", load_factors().low, 1.0F);
    const bool is_rescaled = arch::any(factor != 1);
    wait_output();
    if (is_rescaled) {
      arch::trace_begin("rescale");
      PAGODA_UNROLL
      for (int section = 0; section < tile.sections(); ++section) {
        const int32_t columns = lane_columns(section);
        if (columns == 0) break;
        kernels::sm100::rescale_output<tile.lane_columns()>(tmem_.o(section), columns, factor);
      }
      arch::trace_end();
    }
    arrive_o_ready();
  }

  // Computed columns of a section in each lane.
  [[nodiscard]] PAGODA_DEVICE int32_t lane_columns(int section) const {
    if (section * tile.section_columns() >= params_.dim_vo) return 0;
    return computed_columns<Config>(params_, section) / tile.row_lanes();
  }

  PAGODA_DEVICE kernels::FloatPair load_factors() {
    return kernels::sm100::load_factors(factors_, storage_.factors.at(lane_));
  }
  // The pivot and sum of a row. Two lanes that share a row have the same pivot; their sums are
  // added.
  PAGODA_DEVICE softmax::Sums load_sums() {
    factors_.consumer_wait();  // waits until the softmax warps have stored the pairs of all lanes
    const kernels::FloatPair pair = arch::load(storage_.factors.at(lane_));
    softmax::Sums sums{pair.low, pair.high};
    if constexpr (shares_rows) {
      sums.sum += arch::load(storage_.factors.at(lane_ ^ tile.block_rows)).high;
    }
    kernels::sm100::release_factors(factors_);
    return sums;
  }
  PAGODA_DEVICE void wait_output() {
    kernels::sm100::wait_output(storage_.o_full, o_phase_);
    o_phase_ ^= 1U;
  }
  // Signals the MMA warp that this warp has rescaled its rows of O, or has read them and the next P
  // V may overwrite them.
  PAGODA_DEVICE void arrive_o_ready() {
    arch::tcgen05_fence_before_thread_sync();  // orders accesses to O before the MMAs
    if (arch::elect_one() != 0) storage_.p_full.arrive_remote(kLeader);
  }

  // --- epilogue --------------------------------------------------------------------------------

  PAGODA_DEVICE void epilogue(const Work& work) {
    const Row row =
        make_row<Config, softmax::RescaleLazily>(params_, work, rank_, lane_ % tile.block_rows);
    const bool is_computed = work.walk.num_tiles > 0;
    softmax::Sums sums;
    float max = softmax::kMinusInfinity;
    if (is_computed) {
      sums = load_sums();
      if (params_.row_max != nullptr) max = load_factors().low;
      wait_output();
    }
    arch::trace_begin("store");
    if (work.is_split()) {
      store_partial(work, row, sums, max, is_computed);
    } else {
      store_result(work, row, sums, max, is_computed);
    }
    arch::trace_end();
    // Signals the load-Q lane: O is complete, so the MMAs have read Q; and TMA has read the O
    // staged there, because the lane that stored it arrives.
    if (is_computed && arch::warp_idx() % 4 == 0) storage_.q_empty.arrive_if(arch::elect_one());
  }

  PAGODA_DEVICE void store_result(const Work& work, const Row& row, softmax::Sums sums, float max,
                                  bool is_computed) {
    const kernels::RowResult result =
        kernels::finalize_row(params_, work, row.q_head, row.is_valid, sums, max);
    if (row.is_written && lane_ < tile.block_rows) {
      kernels::store_lse_and_max(params_, work, row.token, row.q_head, result);
    }
    const bool is_whole = work.num_tokens >= (rank_ + 1) * tokens_of_block<Config>(work);
    const bool is_by_tma = has_staging && params_.is_out_by_tma && is_whole && is_computed;
    if (is_by_tma) {
      if constexpr (has_staging) store_by_tma(work, result.end.o_factor);
    } else {
      store_from_registers(work, row, result.end.o_factor, is_computed);
    }
  }

  // Calls store(address, column) for batches of this lane's columns of O.
  template <class Store>
  PAGODA_DEVICE void for_each_batch(const Store& store) {
    PAGODA_UNROLL
    for (int section = 0; section < tile.sections(); ++section) {
      const int32_t columns = lane_columns(section);
      const int32_t first = section * tile.section_columns() + lane_ / tile.block_rows * columns;
      PAGODA_NO_UNROLL
      for (int32_t column = 0; column < columns; column += batch) {
        store(tmem_.o(section).columns(column), first + column);
      }
    }
  }
  // Calls store(column, values) for batches of this lane's columns of O, then releases O. All
  // threads call, because tensor memory loads are warp-wide.
  template <class Store>
  PAGODA_DEVICE void read_output(const Store& store) {
    for_each_batch([&store](arch::TmemPtr from, int32_t column) {
      uint32_t o[batch];
      arch::tmem_load<arch::TmemShape::k32x32b, batch>(o, from);
      arch::tmem_wait_load(o);
      store(column, o);
    });
    arrive_o_ready();
  }

  // Stages O in the memory of Q, then stores it by TMA.
  PAGODA_DEVICE void store_by_tma(const Work& work, float factor) {
    const auto staging = storage_.q.data().template as<Out>();
    read_output([&](int32_t column, const uint32_t(&o)[batch]) {
      kernels::stage_columns(staging, tile.block_rows, lane_ % tile.block_rows, column, o, factor);
    });
    arch::fence_proxy_async_shared();  // orders the staged rows before TMA's reads
    // Waits until all correction warps have staged their rows.
    sync();
    kernels::sm100::tma_store_panels<0, tile.depth, out_panel_columns, tile.block_rows>(
        params_, work, rank_ * tokens_of_block<Config>(work), staging);
  }

  PAGODA_DEVICE void store_from_registers(const Work& work, const Row& row, float factor,
                                          bool is_computed) {
    const kernels::sm100::RowStore<Out, Row> store(params_, work, row, factor);
    if (is_computed) {
      read_output(store);
      return;
    }
    constexpr uint32_t zeros[batch] = {};
    for_each_batch([&](arch::TmemPtr, int32_t column) { store(column, zeros); });
  }

  // --- KV splits -------------------------------------------------------------------------------

  // Stores this split's O and sums in the workspace. A CTA merges its own block of rows, if it is
  // the last to arrive of the CTAs that have this block.
  PAGODA_DEVICE void store_partial(const Work& work, const Row& row, softmax::Sums sums, float max,
                                   bool is_computed) {
    Split rows(params_, rank_);
    const int32_t slot = work.slot(work.split);
    const int index = lane_ % tile.block_rows;
    if (is_computed) {
      const arch::GlobalPtr<float> to = rows.out_row(slot, index);
      read_output([&](int32_t column, const uint32_t(&o)[batch]) {
        if (!row.is_valid) return;
        PAGODA_UNROLL
        for (int i = 0; i < batch; i += 4) {
          arch::store((to + (column + i)).template as<arch::Words<4>>(),
                      arch::Words<4>{{o[i], o[i + 1], o[i + 2], o[i + 3]}});
        }
      });
      if (row.is_valid && lane_ < tile.block_rows) {
        rows.store_partial_stats(slot, index, sums, max);
      }
    }
    if (!rows.arrive_and_check_last(work, storage_.arrivals.at(0), lane_ == 0,
                                    [](arch::Where where) { sync(where); })) {
      return;
    }
    for (int r = arch::warp_idx() % 4; r < tile.block_rows; r += 4) {
      const Row where = make_row<Config, softmax::RescaleLazily>(params_, work, rank_, r);
      if (where.is_written) rows.merge_row(work, r, where);
    }
  }

  static PAGODA_DEVICE void sync(arch::Where where = arch::Where::current()) {
    arch::named_barrier_sync(kCorrectionBarrier, kWarpgroup, where);
  }

  const AttentionParams& params_;
  Storage<Config>& storage_;
  Tmem<Config> tmem_;  // this warp's lanes
  int rank_, lane_;
  FactorPipeline factors_;
  uint32_t o_phase_ = 0;
};

}  // namespace pagoda::mha_sm100_d512
