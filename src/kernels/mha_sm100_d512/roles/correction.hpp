// The correction role: a warpgroup of each CTA that multiplies O in tensor memory where a maximum has moved,
// and brings finished rows out: normalised, through the place of Q and TMA where the CTA's block is whole, else
// from registers.
#pragma once

#include <cstdint>

#include "arch/debug.hpp"
#include "arch/fence.hpp"
#include "arch/named_barrier.hpp"
#include "arch/tcgen05.hpp"
#include "arch/thread.hpp"
#include "arch/tma.hpp"
#include "arch/warp.hpp"
#include "kernels/common/row_store.hpp"
#include "kernels/common/sm100/rescale.hpp"
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
  using Row = kernels::Row<softmax::RescaleLazily>;  // of its own: the sums come from softmax
  // O fits in the place of Q; where Q is of 8 bits it does not.
  static constexpr bool has_staging = sizeof(T) == sizeof(Out);
  static constexpr int out_chunk = 128 / static_cast<int>(sizeof(Out));  // columns of a panel of O

  PAGODA_DEVICE Correction(const AttentionParams& params, Storage<Config>& storage,
                           Tmem<Config> tmem, int rank)
      : params_(params),
        storage_(storage),
        tmem_{tmem.base.lanes(arch::tmem_first_lane_of_warp(arch::warp_idx()))},
        rank_(rank),
        lane_(arch::thread_idx() % kWarpgroup),
        factors_(FactorPipeline::consumer(storage.factor_ring)) {}

  PAGODA_DEVICE void run() {
    allow_product();  // O is nobody's
    WorkReader reader(storage_.work);
    for (; reader.next(); reader.release()) {
      // The first tile corrects nothing.
      PAGODA_NO_UNROLL
      for (int32_t i = reader.work().walk.num_tiles; i > 1; --i) correct();
      finish(reader.work());
    }
  }

 private:
  // --- between the products --------------------------------------------------------------------

  PAGODA_DEVICE void correct() {
    const float factor = arch::mutable_value("O not rescaled", receive().low, 1.0F);
    const bool is_moved = arch::any(factor != 1);
    wait_output();
    if (is_moved) {
      arch::trace_begin("rescale");
      PAGODA_UNROLL
      for (int section = 0; section < tile.sections(); ++section) {
        const int32_t columns = lane_columns(section);
        if (columns == 0) break;
        kernels::sm100::rescale_columns<tile.lane_columns()>(tmem_.o(section), columns, factor);
      }
      arch::trace_end();
    }
    allow_product();
  }

  // Columns of a section that each lane has.
  [[nodiscard]] PAGODA_DEVICE int32_t lane_columns(int section) const {
    if (section * tile.section_columns() >= params_.dim_vo) return 0;
    return computed_columns<Config>(params_, section) / tile.row_lanes();
  }

  PAGODA_DEVICE kernels::FloatPair receive() {
    factors_.consumer_wait();  // softmax has written it
    const kernels::FloatPair pair = arch::load(storage_.factors.at(lane_));
    give_back_factors();
    return pair;
  }
  PAGODA_DEVICE void give_back_factors() {
    arch::syncwarp();
    factors_.consumer_mbar().arrive_if(arch::elect_one());
    factors_.step();
  }
  // Of the whole row: the pivot is the same in both lanes of one.
  PAGODA_DEVICE softmax::Sums receive_sums() {
    factors_.consumer_wait();  // softmax has written it, in all lanes
    const kernels::FloatPair pair = arch::load(storage_.factors.at(lane_));
    softmax::Sums sums{pair.low, pair.high};
    if constexpr (shares_rows) {
      sums.sum += arch::load(storage_.factors.at(lane_ ^ tile.block_rows)).high;
    }
    give_back_factors();
    return sums;
  }
  PAGODA_DEVICE void wait_output() {
    storage_.o_full.wait(o_phase_);  // P V is complete
    o_phase_ ^= 1U;
    arch::tcgen05_fence_after_thread_sync();
  }
  // This warp's rows of O are scaled, or read.
  PAGODA_DEVICE void allow_product() {
    arch::tcgen05_fence_before_thread_sync();
    if (arch::elect_one() != 0) storage_.p_full.arrive_remote(kLeader);
  }

  // --- the end of the rows ---------------------------------------------------------------------

  PAGODA_DEVICE void finish(const Work& work) {
    const Row row =
        make_row<Config, softmax::RescaleLazily>(params_, work, rank_, lane_ % tile.block_rows);
    const bool is_computed = work.walk.num_tiles > 0;
    softmax::Sums sums;
    float max = softmax::kMinusInfinity;
    if (is_computed) {
      sums = receive_sums();
      if (params_.row_max != nullptr) max = receive().low;
      wait_output();
    }
    arch::trace_begin("store");
    const kernels::RowResult result =
        kernels::finalize_row(params_, work.kv_head, row.q_head, row.is_valid, sums, max);
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
    arch::trace_end();
    // Q's products are complete, as O's are, and nothing of O is left in its place.
    if (is_computed && arch::warp_idx() % 4 == 0) storage_.q_empty.arrive_if(arch::elect_one());
  }

  // Calls store(column, values) for batches of columns of this lane's share of its row of O. Every thread
  // calls: loads are a warp's.
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
  // The same with what O holds, which is given back.
  template <class Store>
  PAGODA_DEVICE void read_output(const Store& store) {
    for_each_batch([&store](arch::TmemPtr from, int32_t column) {
      uint32_t o[batch];
      arch::tmem_load<arch::TmemShape::k32x32b, batch>(o, from);
      arch::tmem_wait_load(o);
      store(column, o);
    });
    allow_product();
  }

  // Panels of `out_chunk` columns in the place of Q.
  PAGODA_DEVICE void store_by_tma(const Work& work, float factor) {
    const auto staging = storage_.q.data().template as<Out>();
    read_output([&](int32_t column, const uint32_t(&o)[batch]) {
      kernels::stage_columns(staging, tile.block_rows, lane_ % tile.block_rows, column, o, factor);
    });
    arch::fence_proxy_async_shared();  // the staged rows, before TMA reads them
    arch::named_barrier_sync(kCorrectionBarrier, kWarpgroup);
    const bool is_ragged = params_.sequences.cu_rows != nullptr;
    const int32_t first = work.first_token + rank_ * tokens_of_block<Config>(work) +
                          (is_ragged ? work.memory_row : 0);
    // By the lane that frees the place, too: its own wait comes before its arrival.
    const int32_t issues = arch::warp_idx() % 4 == 0 ? arch::elect_one() : 0;
    PAGODA_UNROLL
    for (int column = 0; column < tile.depth; column += out_chunk) {
      if (column >= params_.dim_vo) break;
      arch::tma_store<4>(issues, params_.out,
                         {{column, work.first_head, first, is_ragged ? 0 : work.sequence}},
                         staging + column * tile.block_rows);
    }
    arch::bulk_commit_group();
    arch::bulk_wait_group_read<0>();  // the place may be written again
  }

  PAGODA_DEVICE void store_from_registers(const Work& work, const Row& row, float factor,
                                          bool is_computed) {
    const arch::GlobalPtr<Out> to = kernels::out_row<Out>(params_, work, row);
    const auto store = [&](int32_t column, const uint32_t(&o)[batch]) {
      if (row.is_written) kernels::store_columns(to, params_.dim_vo, column, o, factor);
    };
    if (is_computed) {
      read_output(store);
      return;
    }
    constexpr uint32_t zeros[batch] = {};
    for_each_batch([&](arch::TmemPtr, int32_t column) { store(column, zeros); });
  }

  const AttentionParams& params_;
  Storage<Config>& storage_;
  Tmem<Config> tmem_;  // this warp's lanes
  int rank_, lane_;
  FactorPipeline factors_;
  uint32_t o_phase_ = 0;
};

}  // namespace pagoda::mha_sm100_d512
