// The correction role: a warpgroup that multiplies O in tensor memory where a maximum has moved, and
// brings finished rows out: normalised, through the place of Q and TMA where a half is whole, else from
// registers; or as pieces of split rows. A thread has the same row of both halves.
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
#include "kernels/common/split_rows.hpp"
#include "kernels/mha_sm100/rows.hpp"

namespace pagoda::mha_sm100 {

inline constexpr int kCorrectionBarrier = 1;  // named; 0 is syncthreads

template <class Config>
class Correction {
 public:
  using Ops = Operands<Config>;
  using T = typename Config::T;
  using Out = typename Config::Out;
  static constexpr TileConfig tile = Config::tile;
  using Split = kernels::SplitRows<Out, kRows, kHalves, tile.depth>;
  using Row = kernels::Row<softmax::RescaleLazily>;  // of its own: the sums come from softmax
  // O leaves through the place of Q, as wide in bytes: where Q is of 8 bits in two passes.
  static constexpr int passes = sizeof(Out) / sizeof(T);
  static constexpr int pass_columns = tile.depth / passes;
  static constexpr arch::Swizzle out_swizzle = kernels::sm100::swizzle_of(sizeof(T));
  static constexpr int out_chunk =  // columns of a panel of O
      static_cast<int>(swizzle_width_bytes(out_swizzle) / sizeof(Out));
  static_assert(pass_columns % out_chunk == 0);
  static constexpr bool may_split = tile.ctas == 1;

  PAGODA_DEVICE Correction(const AttentionParams& params, Storage<Config>& storage,
                           Tmem<Config> tmem)
      : params_(params),
        storage_(storage),
        thread_(arch::thread_idx() % kWarpgroup),
        o_{tmem.o(0).lanes(arch::tmem_first_lane_of_warp(arch::warp_idx())),
           tmem.o(1).lanes(arch::tmem_first_lane_of_warp(arch::warp_idx()))},
        factors_{FactorPipeline::consumer(storage.factor_ring[0]),
                 FactorPipeline::consumer(storage.factor_ring[1])} {}

  PAGODA_DEVICE void run() {
    PAGODA_UNROLL
    for (int half = 0; half < kHalves; ++half) allow_product(half);  // O is nobody's
    WorkReader reader(storage_.work);
    for (; reader.next(); reader.release()) {
      const int32_t num_tiles = reader.work().walk.num_tiles;
      const int halves = num_tiles == 0 ? 0 : num_halves<Config>(reader.work());
      const bool has_streams = has_two_streams<Config>(reader.work());
      const bool has_second = has_streams || halves == 2;
      // The first tile of a half, or of a stream, corrects nothing.
      PAGODA_NO_UNROLL
      for (int32_t i = has_streams ? 2 : 1; i < num_tiles; ++i) {
        if (!has_streams || i % 2 == 0) correct(0);
        if (has_second && (!has_streams || i % 2 != 0)) correct(1);
      }
      finish(reader.work(), 0, halves > 0, has_streams);
      finish(reader.work(), 1, halves > 1, false);
    }
  }

 private:
  // --- between the products --------------------------------------------------------------------

  PAGODA_DEVICE void correct(int half) {
    const float factor = arch::mutable_value("O not rescaled", receive(half).low, 1.0F);
    const bool is_moved = arch::any(factor != 1);
    wait_output(half);
    if (is_moved) {
      arch::trace_begin("rescale");
      kernels::sm100::rescale_columns<tile.depth>(o_[half], params_.dim_vo, factor);
      arch::trace_end();
    }
    allow_product(half);
  }

  PAGODA_DEVICE kernels::FloatPair receive(int half) {
    factors_[half].consumer_wait();  // softmax has written it
    const kernels::FloatPair pair = arch::load(storage_.factors.at(half * kRows + thread_));
    arch::syncwarp();
    factors_[half].consumer_mbar().arrive_if(arch::elect_one());
    factors_[half].step();
    return pair;
  }
  PAGODA_DEVICE void wait_output(int half) {
    storage_.o_full[half].wait(o_phase_ >> half & 1U);  // P V is complete
    o_phase_ ^= 1U << half;
    arch::tcgen05_fence_after_thread_sync();
  }
  // This warp's rows of O are scaled, or read.
  PAGODA_DEVICE void allow_product(int half) {
    arch::tcgen05_fence_before_thread_sync();
    Ops::Group::tell_tensor(storage_.p_full[half][0], arch::elect_one());
  }

  // --- the end of the rows ---------------------------------------------------------------------

  // is_computed: the half had products; has_streams: and its odd key tiles were the other's.
  PAGODA_DEVICE void finish(const Work& work, int half, bool is_computed, bool has_streams) {
    const int32_t block = Ops::block_of(half);
    const Row row = make_row<softmax::RescaleLazily>(params_, work, block, thread_);
    softmax::Sums sums;
    float max = softmax::kMinusInfinity;
    if (is_computed) receive_sums(half, sums, max);
    arch::trace_begin("store");
    if (has_streams) {
      softmax::Sums other;
      float other_max = softmax::kMinusInfinity;
      receive_sums(1, other, other_max);
      max = other_max > max ? other_max : max;
      const softmax::Merged merged = softmax::merge(sums, other);
      sums = merged.sums;
      merge_output(merged.a, merged.b);
    }
    if (may_split && work.is_split()) {
      if constexpr (may_split) leave_piece(work, half, row, sums, max, is_computed);
    } else {
      const kernels::RowResult result =
          kernels::finalize_row(params_, work.kv_head, row.q_head, row.is_valid, sums, max);
      if (row.is_written) {
        kernels::store_lse_and_max(params_, work, row.token, row.q_head, result);
      }
      const bool is_whole = work.num_tokens >= (block + 1) * tokens_of_half(work);
      if (params_.is_out_by_tma && is_whole && is_computed) {
        store_by_tma(work, half, result.end.o_factor);
      } else {
        store_from_registers(work, half, row, result.end.o_factor, is_computed);
      }
    }
    arch::trace_end();
    // Q's products are complete, as O's are, and nothing of O is left in its place.
    if (is_computed && arch::warp_idx() % 4 == 0) {
      storage_.q_empty[half].arrive_if(arch::elect_one());
    }
  }

  PAGODA_DEVICE void receive_sums(int half, softmax::Sums& sums, float& max) {
    const kernels::FloatPair pair = receive(half);
    sums = {pair.low, pair.high};
    if (params_.row_max != nullptr) max = receive(half).low;
    wait_output(half);
  }

  // O0 = a O0 + b O1; gives O1 back. What has weight 0 may hold anything.
  PAGODA_DEVICE void merge_output(float a, float b) {
    constexpr int batch = 16;
    PAGODA_NO_UNROLL
    for (int column = 0; column < params_.dim_vo; column += batch) {
      uint32_t o[batch], other[batch];
      arch::tmem_load<arch::TmemShape::k32x32b, batch>(o, o_[0].columns(column));
      arch::tmem_load<arch::TmemShape::k32x32b, batch>(other, o_[1].columns(column));
      arch::tmem_wait_load(o, other);
      PAGODA_UNROLL
      for (int i = 0; i < batch; ++i) {
        const float first = a == 0 ? 0 : a * core::bits_to_float(o[i]);
        const float second = b == 0 ? 0 : b * core::bits_to_float(other[i]);
        o[i] = core::float_to_bits(first + second);
      }
      arch::tmem_store<arch::TmemShape::k32x32b, batch>(o_[0].columns(column), o);
    }
    arch::tmem_wait_store();
    allow_product(1);
  }

  // Calls store(column, values) for batches of 32 columns of this thread's row of O, then gives O back.
  // Every thread calls: loads are a warp's.
  template <class Store>
  PAGODA_DEVICE void read_output(int half, const Store& store) {
    read_columns<0, tile.depth>(half, store);
    allow_product(half);
  }
  template <int begin, int end, class Store>
  PAGODA_DEVICE void read_columns(int half, const Store& store) {
    constexpr int batch = 32;
    PAGODA_UNROLL
    for (int column = begin; column < end; column += batch) {
      if (column >= params_.dim_vo) break;
      uint32_t o[batch];
      arch::tmem_load<arch::TmemShape::k32x32b, batch>(o, o_[half].columns(column));
      arch::tmem_wait_load(o);
      store(column, o);
    }
  }

  // Panels of `out_chunk` columns in the place of Q.
  template <int pass = 0>
  PAGODA_DEVICE void store_by_tma(const Work& work, int half, float factor) {
    constexpr int begin = pass * pass_columns, end = begin + pass_columns;
    const auto staging = storage_.q.at(half * Ops::q_elements).template as<Out>();
    read_columns<begin, end>(half, [&](int column, const uint32_t(&o)[32]) {
      kernels::stage_columns<out_swizzle>(staging, kRows, thread_, column - begin, o, factor);
    });
    if constexpr (pass + 1 == passes) allow_product(half);
    arch::fence_proxy_async_shared();  // the staged rows, before TMA reads them
    sync();
    const bool is_ragged = params_.sequences.cu_rows != nullptr;
    const int32_t first = work.first_token + Ops::block_of(half) * tokens_of_half(work) +
                          (is_ragged ? work.memory_row : 0);
    // By the lane that frees the place, too: its own wait comes before its arrival.
    const int32_t issues = arch::warp_idx() % 4 == 0 ? arch::elect_one() : 0;
    PAGODA_UNROLL
    for (int column = begin; column < end; column += out_chunk) {
      if (column >= params_.dim_vo) break;
      arch::tma_store<4>(issues, params_.out,
                         {{column, work.first_head, first, is_ragged ? 0 : work.sequence}},
                         staging + (column - begin) * kRows);
    }
    arch::bulk_commit_group();
    arch::bulk_wait_group_read<0>();  // the place may be written again
    if constexpr (pass + 1 < passes) {
      sync();  // all know that
      store_by_tma<pass + 1>(work, half, factor);
    }
  }

  PAGODA_DEVICE void store_from_registers(const Work& work, int half, const Row& row, float factor,
                                          bool is_computed) {
    const arch::GlobalPtr<Out> to = kernels::out_row<Out>(params_, work, row);
    const auto store = [&](int column, const uint32_t(&o)[32]) {
      if (row.is_written) kernels::store_columns(to, params_.dim_vo, column, o, factor);
    };
    if (is_computed) {
      read_output(half, store);
      return;
    }
    constexpr uint32_t zeros[32] = {};
    for (int column = 0; column < params_.dim_vo; column += 32) store(column, zeros);
  }

  // --- split rows ------------------------------------------------------------------------------

  PAGODA_DEVICE void leave_piece(const Work& work, int half, const Row& row, softmax::Sums sums,
                                 float max, bool is_computed) {
    Split rows(params_, half);
    const int32_t slot = work.slot(work.split);
    if (is_computed) {
      const arch::GlobalPtr<float> to = rows.out_row(slot, thread_);
      read_output(half, [&](int column, const uint32_t(&o)[32]) {
        if (!row.is_valid) return;
        PAGODA_UNROLL
        for (int i = 0; i < 32; i += 4) {
          arch::store((to + (column + i)).template as<arch::Words<4>>(),
                      arch::Words<4>{{o[i], o[i + 1], o[i + 2], o[i + 3]}});
        }
      });
      if (row.is_valid) rows.store_partial_stats(slot, thread_, sums, max);
    }
    if (!rows.arrive_and_check_last(work, storage_.arrivals.at(half), thread_ == 0,
                                    [](arch::Where where) { sync(where); }))
      return;
    for (int r = arch::warp_idx() % 4; r < kRows; r += 4) {
      const Row where = make_row<softmax::RescaleLazily>(params_, work, half, r);
      if (where.is_written) rows.merge_row(work, r, where);
    }
  }

  static PAGODA_DEVICE void sync(arch::Where where = arch::Where::current()) {
    arch::named_barrier_sync(kCorrectionBarrier, kWarpgroup, where);
  }

  const AttentionParams& params_;
  Storage<Config>& storage_;
  int thread_;
  arch::TmemPtr o_[kHalves];
  FactorPipeline factors_[kHalves];
  uint32_t o_phase_ = 0;  // a bit a half
};

}  // namespace pagoda::mha_sm100
