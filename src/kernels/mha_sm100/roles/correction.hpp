// The correction role: one warpgroup rescales O in tensor memory when the maximum of a row has
// grown, and runs the epilogue. The epilogue normalises O and stores it by TMA, staged in the
// memory of Q, where all rows of a half exist, else from registers; or it stores the partial result
// of a KV split. Thread r has row r of both halves.
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
#include "kernels/mha_sm100/rows.hpp"

namespace pagoda::mha_sm100 {

// The named barrier of the correction warps; 0 is syncthreads.
inline constexpr int kCorrectionBarrier = 1;

template <class Config>
class Correction {
 public:
  using Ops = Operands<Config>;
  using T = typename Config::T;
  using Out = typename Config::Out;
  static constexpr TileConfig tile = Config::tile;
  using Split = kernels::SplitRows<Out, kRows, kHalves * tile.ctas, tile.depth>;
  using Row = kernels::Row<softmax::RescaleLazily>;  // which row; the softmax warps send the sums
  // O is staged in the memory of Q. O of e4m3 queries is twice as wide, and takes two passes.
  static constexpr int passes =
      sizeof(Out) / sizeof(T);  // NOLINT(bugprone-sizeof-expression): Out is T or wider
  static constexpr int pass_columns = tile.depth / passes;
  static constexpr arch::Swizzle out_swizzle = kernels::sm100::swizzle_of(sizeof(T));
  static constexpr int out_panel_columns =
      static_cast<int>(swizzle_width_bytes(out_swizzle) / sizeof(Out));
  static_assert(pass_columns % out_panel_columns == 0);

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
    for (int half = 0; half < kHalves; ++half) arrive_o_ready(half);  // O is free at the start
    WorkReader reader(storage_.work);
    for (; reader.next(); reader.release()) {
      const int32_t num_tiles = reader.work().walk.num_tiles;
      const int halves = num_tiles == 0 ? 0 : num_halves<Config>(reader.work());
      const bool is_split = is_kv_split_in_cta<Config>(reader.work());
      const bool uses_second = is_split || halves == 2;
      // The first KV tile that writes O0, and the first that writes O1, rescale nothing.
      PAGODA_NO_UNROLL
      for (int32_t i = is_split ? 2 : 1; i < num_tiles; ++i) {
        if (!is_split || i % 2 == 0) rescale(0);
        if (uses_second && (!is_split || i % 2 != 0)) rescale(1);
      }
      epilogue(reader.work(), 0, halves > 0, is_split);
      epilogue(reader.work(), 1, halves > 1, false);
    }
  }

 private:
  // --- mainloop --------------------------------------------------------------------------------

  PAGODA_DEVICE void rescale(int half) {
    const float factor = arch::mutable_value("O not rescaled", load_factors(half).low, 1.0F);
    const bool is_rescaled = arch::any(factor != 1);
    wait_output(half);
    if (is_rescaled) {
      arch::trace_begin("rescale");
      kernels::sm100::rescale_output<tile.depth>(o_[half], params_.dim_vo, factor);
      arch::trace_end();
    }
    arrive_o_ready(half);
  }

  PAGODA_DEVICE kernels::FloatPair load_factors(int half) {
    return kernels::sm100::load_factors(factors_[half],
                                        storage_.factors.at(half * kRows + thread_));
  }
  PAGODA_DEVICE void wait_output(int half) {
    kernels::sm100::wait_output(storage_.o_full[half], o_phase_ >> half & 1U);
    o_phase_ ^= 1U << half;
  }
  // Signals the MMA warp that this warp has rescaled its rows of O, or has read them and the next P
  // V may overwrite them.
  PAGODA_DEVICE void arrive_o_ready(int half) {
    arch::tcgen05_fence_before_thread_sync();  // orders accesses to O before the MMAs
    Ops::Group::arrive_tmem(storage_.p_full[half][0], arch::elect_one());
  }

  // --- epilogue --------------------------------------------------------------------------------

  // is_computed: MMAs have written O of this half. is_split: odd KV tiles are in O1.
  PAGODA_DEVICE void epilogue(const Work& work, int half, bool is_computed, bool is_split) {
    const int32_t block = Ops::block_of(half);
    const Row row = make_row<softmax::RescaleLazily>(params_, work, block, thread_);
    softmax::Sums sums;
    float max = softmax::kMinusInfinity;
    if (is_computed) load_sums(half, sums, max);
    arch::trace_begin("store");
    if (is_split) {
      softmax::Sums other;
      float other_max = softmax::kMinusInfinity;
      load_sums(1, other, other_max);
      max = other_max > max ? other_max : max;
      const softmax::Merged merged = softmax::merge(sums, other);
      sums = merged.sums;
      merge_kv_split(merged.a, merged.b);
    }
    if (work.is_split()) {
      store_partial(work, half, row, sums, max, is_computed);
    } else {
      const kernels::RowResult result =
          kernels::finalize_row(params_, work, row.q_head, row.is_valid, sums, max);
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
    // Signals the load-Q lane: O is complete, so the MMAs have read Q; and TMA has read the O
    // staged there, because the lane that stored it arrives.
    if (is_computed && arch::warp_idx() % 4 == 0) {
      storage_.q_empty[half].arrive_if(arch::elect_one());
    }
  }

  PAGODA_DEVICE void load_sums(int half, softmax::Sums& sums, float& max) {
    const kernels::FloatPair pair = load_factors(half);
    sums = {pair.low, pair.high};
    if (params_.row_max != nullptr) max = load_factors(half).low;
    wait_output(half);
  }

  // O0 = a O0 + b O1, then releases O1. An O with weight 0 may be uninitialised.
  PAGODA_DEVICE void merge_kv_split(float a, float b) {
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
    arrive_o_ready(1);
  }

  // Calls store(column, values) for batches of 32 columns of this thread's row of O, then releases
  // O. All threads call, because tensor memory loads are warp-wide.
  template <class Store>
  PAGODA_DEVICE void read_output(int half, const Store& store) {
    read_columns<0, tile.depth>(half, store);
    arrive_o_ready(half);
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

  // Stages the columns of a pass in the memory of Q, then stores them by TMA.
  template <int pass = 0>
  PAGODA_DEVICE void store_by_tma(const Work& work, int half, float factor) {
    constexpr int begin = pass * pass_columns, end = begin + pass_columns;
    const auto staging = storage_.q.at(half * Ops::q_elements).template as<Out>();
    read_columns<begin, end>(half, [&](int column, const uint32_t(&o)[32]) {
      kernels::stage_columns<out_swizzle>(staging, kRows, thread_, column - begin, o, factor);
    });
    if constexpr (pass + 1 == passes) arrive_o_ready(half);
    arch::fence_proxy_async_shared();  // orders the staged rows before TMA's reads
    sync();                            // waits until all correction warps have staged their rows
    kernels::sm100::tma_store_panels<begin, end, out_panel_columns, kRows>(
        params_, work, Ops::block_of(half) * tokens_of_half(work), staging);
    if constexpr (pass + 1 < passes) {
      sync();  // waits until the storing lane knows that TMA has read the staged pass
      store_by_tma<pass + 1>(work, half, factor);
    }
  }

  PAGODA_DEVICE void store_from_registers(const Work& work, int half, const Row& row, float factor,
                                          bool is_computed) {
    const kernels::sm100::RowStore<Out, Row> store(params_, work, row, factor);
    if (is_computed) {
      read_output(half, store);
      return;
    }
    constexpr uint32_t zeros[32] = {};
    for (int column = 0; column < params_.dim_vo; column += 32) store(column, zeros);
  }

  // --- KV splits over CTAs ---------------------------------------------------------------------

  // Stores this split's O and sums in the workspace. The last CTA to arrive merges all splits.
  PAGODA_DEVICE void store_partial(const Work& work, int half, const Row& row, softmax::Sums sums,
                                   float max, bool is_computed) {
    const int32_t block = Ops::block_of(half);
    Split rows(params_, block);
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
      const Row where = make_row<softmax::RescaleLazily>(params_, work, block, r);
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
  uint32_t o_phase_ = 0;  // one bit per half
};

}  // namespace pagoda::mha_sm100
