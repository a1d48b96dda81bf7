// The end of a unit whose keys four warps have shared (attend_warp.hpp): their sums and O become one, in
// slabs of 8 rows and 64 columns through shared memory, and go out as T, or to the unit's slot where
// other CTAs have more of its keys (partial.hpp).
#pragma once

#include <cstdint>

#include "kernels/mha_sm90/partial.hpp"
#include "kernels/mha_sm90/roles/warp_consumer.hpp"

namespace pagoda::mha_sm90 {

// All threads of the consumer warpgroup.
template <class Config>
class MergeWarps {
 public:
  using Ops = Operands<Config>;
  using T = typename Config::T;
  using Place = MergePlace<Ops>;
  using Values = typename AttendWarp<Config>::Values;
  static constexpr TileConfig tile = Config::tile;

  PAGODA_DEVICE MergeWarps(const AttentionParams& params, Storage<Config>& storage)
      : params_(params), storage_(storage), partial_(params, storage, 0) {}

  // `rows`, `o`: lane / 4 and lane / 4 + 8 of the unit, this warp's keys.
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
    sync_warpgroup(0);
    PAGODA_UNROLL
    for (int r = 0; r < 2; ++r) {
      if (8 * r >= work.num_tokens * work.num_heads) break;
      const RowOfWarps mine = row_of_warps(8 * r + lane / 4);
      const softmax::Sums own = rows[r].sums;
      const float weight = own.has_keys() ? ::exp2f(own.pivot - mine.sums.pivot) : 0.0F;
      const int index = 8 * r + arch::thread_idx() % kWarpgroup / 16;  // of the row that it writes
      const RowOfWarps merged = row_of_warps(index);
      const Row row = make_row<Config>(params_, work, index);
      PAGODA_UNROLL
      for (int slab = 0; slab < tile.depth_vo / Place::slab_columns; ++slab) {
        if (r + slab > 0) sync_warpgroup(0);  // the slab before has been read
        leave(slab, r, weight, o);
        sync_warpgroup(0);
        if (row.is_written) write(work, row, index, slab, merged);
      }
    }
    if (work.is_split()) partial_.merge_if_last(work);
  }

 private:
  // A row over the four warps.
  struct RowOfWarps {
    softmax::Sums sums{};
    float max = softmax::kMinusInfinity;
  };

  [[nodiscard]] PAGODA_DEVICE arch::SharedPtr<kernels::FloatQuad> stats(int warp, int row) const {
    return storage_.merge.stats.at((warp * kWarpRows + row) * 4).template as<kernels::FloatQuad>();
  }
  [[nodiscard]] PAGODA_DEVICE arch::SharedPtr<kernels::FloatQuad> slab_at(int warp, int row,
                                                                          int column) const {
    return storage_.merge.slab.at((warp * Place::slab_rows + row) * Place::pitch + column)
        .template as<kernels::FloatQuad>();
  }

  [[nodiscard]] PAGODA_DEVICE RowOfWarps row_of_warps(int row) const {
    RowOfWarps result;
    PAGODA_UNROLL
    for (int w = 0; w < 4; ++w) {
      const kernels::FloatQuad of = arch::load(stats(w, row));
      result.sums = softmax::merge(result.sums, softmax::Sums{of.value[0], of.value[1]}).sums;
      result.max = of.value[2] > result.max ? of.value[2] : result.max;
    }
    return result;
  }

  // This warp's part of row lane / 4 + 8 r. A thread has 16 of a slab's columns (fp8_fragments.hpp): in
  // panels of 128 a slab is column n = 2 t of every n-block or n = 2 t + 1, in panels of 64 it is both.
  PAGODA_DEVICE void leave(int slab, int r, float weight,
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
        // A weight of 0: nothing was added, O may be anything.
        quad.value[e] = weight == 0 ? 0.0F : o[4 * block + 2 * r + n] * weight;
      }
      arch::store(slab_at(warp, lane / 4, 16 * (lane % 4) + first), quad);
    }
  }
  // Column of O where quad `quad` of a slab begins.
  static PAGODA_DEVICE int column_of(int slab, int quad) {
    if constexpr (Values::run == 8) return slab * 64 + 4 * quad;
    return slab / 2 * 128 + quad / 4 * 32 + slab % 2 * 16 + quad % 4 * 4;
  }

  // Four columns of a row, a thread.
  PAGODA_DEVICE void write(const Work& work, const Row& row, int index, int slab,
                           const RowOfWarps& merged) const {
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
      partial_.leave_quad(work, index, column, sum);
      if (is_first) partial_.leave_stats(work, index, merged.sums, merged.max);
      return;
    }
    const RowResult result =
        end_row(params_, work.kv_head, row.q_head, row.is_valid, merged.sums, merged.max);
    if (is_first) store_statistics(params_, work, row.token, row.q_head, result);
    store_quad(kernels::out_row<T>(params_, work, row), params_.dim_vo, column, sum.value,
               result.end.o_factor);
  }

  const AttentionParams& params_;
  Storage<Config>& storage_;
  Partial<Config> partial_;
};

}  // namespace pagoda::mha_sm90
