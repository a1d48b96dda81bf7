// WarpEpilogue: the epilogue of WarpConsumer, whose four warps have partial sums and O of the same
// rows, each of its own keys. It adds them up through shared memory, in slabs of 8 rows and 64
// columns, and stores O as T; or, where the row tile is split over CTAs, a partial result
// (split_epilogue.hpp).
#pragma once

#include <cstdint>

#include "kernels/mha_sm90/roles/split_epilogue.hpp"
#include "kernels/mha_sm90/roles/warp_consumer.hpp"

namespace pagoda::mha_sm90 {

// All threads of the consumer warpgroup. A slab is reduced by all of them: 16 threads a row, four
// columns a thread.
template <class Config>
class WarpEpilogue {
 public:
  using Ops = Operands<Config>;
  using T = typename Config::T;
  using Merge = WarpMergeStorage<Ops>;
  using Values = typename WarpConsumer<Config>::Values;
  using Row = mha_sm90::Row<Config>;
  static constexpr TileConfig tile = Config::tile;

  PAGODA_DEVICE WarpEpilogue(const AttentionParams& params, Storage<Config>& storage)
      : params_(params), storage_(storage), split_epilogue_(params, storage, 0) {}

  // `rows`, `o`: rows lane / 4 and lane / 4 + 8 of the work tile over this warp's keys.
  PAGODA_DEVICE void run(const Work& work, const Row (&rows)[2],
                         const float (&o)[tile.depth_vo / 2]) {
    const int lane = arch::lane_idx(), warp = arch::warp_idx() % 4;
    PAGODA_UNROLL
    for (int r = 0; r < 2; ++r) {
      if (lane % 4 != 0) continue;
      const softmax::Sums sums = rows[r].sums;
      arch::store(stats(warp, lane / 4 + 8 * r),
                  kernels::FloatQuad{{sums.pivot, sums.sum, rows[r].online.max(), 0}});
    }
    sync_warpgroup(0);  // the statistics of all warps are stored
    PAGODA_UNROLL
    for (int r = 0; r < 2; ++r) {
      if (8 * r >= work.num_tokens * work.num_heads) break;
      const MergedRow mine = merged_row(8 * r + lane / 4);
      const softmax::Sums own = rows[r].sums;
      const float weight = own.has_keys() ? ::exp2f(own.pivot - mine.sums.pivot) : 0.0F;
      const int index = 8 * r + arch::thread_idx() % kWarpgroup / 16;  // the row that it stores
      const MergedRow merged = merged_row(index);
      const Row row = make_row<Config>(params_, work, index);
      PAGODA_UNROLL
      for (int slab = 0; slab < tile.depth_vo / Merge::slab_columns; ++slab) {
        if (r + slab > 0) sync_warpgroup(0);  // every thread has loaded the previous slab
        store_slab(slab, r, weight, o);
        sync_warpgroup(0);  // every warp has stored its part of the slab
        if (row.is_written) reduce_and_store(work, row, index, slab, merged);
      }
    }
    if (work.is_split()) split_epilogue_.merge_if_last(work);
  }

 private:
  // The statistics of a row over the keys of the four warps.
  struct MergedRow {
    softmax::Sums sums{};
    float max = softmax::kMinusInfinity;
  };

  [[nodiscard]] PAGODA_DEVICE arch::SharedPtr<kernels::FloatQuad> stats(int warp, int row) const {
    return storage_.merge.stats.at((warp * kWarpRows + row) * 4).template as<kernels::FloatQuad>();
  }
  [[nodiscard]] PAGODA_DEVICE arch::SharedPtr<kernels::FloatQuad> slab_at(int warp, int row,
                                                                          int column) const {
    return storage_.merge.slab.at((warp * Merge::slab_rows + row) * Merge::pitch + column)
        .template as<kernels::FloatQuad>();
  }

  [[nodiscard]] PAGODA_DEVICE MergedRow merged_row(int row) const {
    MergedRow result;
    PAGODA_UNROLL
    for (int w = 0; w < 4; ++w) {
      const kernels::FloatQuad warp = arch::load(stats(w, row));
      result.sums = softmax::merge(result.sums, softmax::Sums{warp.value[0], warp.value[1]}).sums;
      result.max = warp.value[2] > result.max ? warp.value[2] : result.max;
    }
    return result;
  }

  // Stores this warp's part of row lane / 4 + 8 r, multiplied with `weight`. A thread has 16
  // columns of a slab (fp8_fragments.hpp): in panels of 128 columns a slab has one of a thread's
  // two columns of every n-block, in panels of 64 both.
  PAGODA_DEVICE void store_slab(int slab, int r, float weight,
                                const float (&o)[tile.depth_vo / 2]) const {
    const int lane = arch::lane_idx(), warp = arch::warp_idx() % 4;
    constexpr int run = Values::run;
    PAGODA_UNROLL
    for (int first = 0; first < 16; first += 4) {
      kernels::FloatQuad quad;
      PAGODA_UNROLL
      for (int e = 0; e < 4; ++e) {
        const int i = first + e;
        const int block = run == 16 ? slab / 2 * 16 + i : slab * 8 + i % 8;
        const int n = run == 16 ? slab % 2 : i / 8;
        // Weight 0: this warp added no key of the row, O may be NaN.
        quad.value[e] = weight == 0 ? 0.0F : o[4 * block + 2 * r + n] * weight;
      }
      arch::store(slab_at(warp, lane / 4, 16 * (lane % 4) + first), quad);
    }
  }
  // Column of O that quad `quad` of a slab starts with.
  static PAGODA_DEVICE int column_of(int slab, int quad) {
    if constexpr (Values::run == 8) return slab * 64 + 4 * quad;
    return slab / 2 * 128 + quad / 4 * 32 + slab % 2 * 16 + quad % 4 * 4;
  }

  // Adds four columns of a row over the warps and stores them.
  PAGODA_DEVICE void reduce_and_store(const Work& work, const Row& row, int index, int slab,
                                      const MergedRow& merged) const {
    const int quad = arch::thread_idx() % 16;
    const int column = column_of(slab, quad);
    kernels::FloatQuad sum = arch::load(slab_at(0, index % 8, 4 * quad));
    PAGODA_UNROLL
    for (int w = 1; w < 4; ++w) {
      const kernels::FloatQuad other = arch::load(slab_at(w, index % 8, 4 * quad));
      PAGODA_UNROLL
      for (int e = 0; e < 4; ++e) sum.value[e] += other.value[e];
    }
    const bool is_first = slab == 0 && quad == 0;
    if (work.is_split()) {
      if (!row.is_valid) return;
      split_epilogue_.store_partial_quad(work, index, column, sum);
      if (is_first) split_epilogue_.store_partial_stats(work, index, merged.sums, merged.max);
      return;
    }
    const RowResult result =
        finalize_row(params_, work, row.q_head, row.is_valid, merged.sums, merged.max);
    if (is_first) store_lse_and_max(params_, work, row.token, row.q_head, result);
    if (!kernels::is_out_of<T>(params_)) {
      kernels::store_converted_quad(params_, kernels::out_offset(params_, work, row),
                                    result.end.o_factor, column, sum.value);
      return;
    }
    kernels::store_quad(kernels::out_row<T>(params_, work, row), params_.dim_vo, column, sum.value,
                        result.end.o_factor);
  }

  const AttentionParams& params_;
  Storage<Config>& storage_;
  SplitEpilogue<Config> split_epilogue_;
};

}  // namespace pagoda::mha_sm90
