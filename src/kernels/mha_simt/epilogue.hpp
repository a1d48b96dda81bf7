// Epilogue: adds up what the warps have of each row, then stores O, LSE and row maximum; or, where
// the keys of the rows are split over CTAs, a partial result, which the last CTA merges
// (split_rows.hpp).
#pragma once

#include <cstdint>

#include "arch/named_barrier.hpp"
#include "kernels/common/row_epilogue.hpp"
#include "kernels/mha_simt/mainloop.hpp"

namespace pagoda::mha_simt {

template <class Config>
class Epilogue {
 public:
  static constexpr TileConfig tile = Config::tile;
  static constexpr int kRows = tile.rows_per_lane();
  static constexpr int kStride = Storage<Config>::kRowStride;
  static constexpr int kStats = Storage<Config>::kStats;
  static constexpr int kChunks = tile.chunks_vo();
  using OnlineRows = typename Mainloop<Config>::OnlineRows;
  using Output = typename Mainloop<Config>::Output;

  PAGODA_DEVICE Epilogue(const kernels::AttentionParams& params, const kernels::Work& work,
                         Storage<Config>& storage)
      : params_(params),
        work_(work),
        storage_(storage),
        split_(params, 0),
        lane_(arch::lane_idx()),
        warp_(arch::thread_idx() / tile.warp_size) {}

  // All threads of the CTA. `online`, `o`: of this lane's rows, from `first_row` on.
  PAGODA_DEVICE void run(int first_row, const OnlineRows& online, const Output& o) {
    merge_warps(first_row, online, o);
    if (!work_.is_split()) {
      for_each_row([&](int index, const Row& row) {
        softmax::Sums sums;
        float max = softmax::kMinusInfinity;
        for (int w = 0; w < TileConfig::kWarps; ++w) merge_stats(stats(w, index), sums, max);
        store_row(index, row, sums, max);
      });
      return;
    }
    for_each_row([&](int index, const Row& /*row*/) { store_partial(index); });
    if (!split_.arrive_and_check_last(work_, storage_.is_last.data(), arch::thread_idx() == 0,
                                      [](arch::Where where) { arch::syncthreads(where); })) {
      return;
    }
    for_each_row([&](int index, const Row& row) {
      softmax::Sums sums;
      float max = softmax::kMinusInfinity;
      for (int32_t i = 0; row.is_valid && i < work_.num_splits; ++i) add_split(i, index, sums, max);
      store_row(index, row, sums, max);
    });
  }

 private:
  // visit(index, row) for the rows of O, a warp each.
  template <class Visit>
  PAGODA_DEVICE void for_each_row(const Visit& visit) const {
    for (int index = warp_; index < tile.BM; index += TileConfig::kWarps) {
      const Row row = make_row(params_, work_, index);
      if (row.is_written) visit(index, row);
    }
  }

  [[nodiscard]] PAGODA_DEVICE arch::SharedPtr<float> stats(int warp, int index) const {
    return storage_.stats.at((warp * tile.BM + index) * kStats);
  }
  [[nodiscard]] PAGODA_DEVICE arch::SharedPtr<float> o_at(int index, int column) const {
    return storage_.rows.at(index * kStride + column);
  }
  static PAGODA_DEVICE softmax::Sums load_sums(arch::SharedPtr<float> from) {
    return {arch::load(from), arch::load(from + 1)};
  }
  static PAGODA_DEVICE void merge_stats(arch::SharedPtr<float> from, softmax::Sums& sums,
                                        float& max) {
    sums = softmax::merge(sums, load_sums(from)).sums;
    max = fmaxf(max, arch::load(from + 2));
  }

  // O of all warps, relative to the pivot of all, in the memory of Q. The order of the additions is
  // that of the warps, so that the bits do not depend on timing.
  PAGODA_DEVICE void merge_warps(int first_row, const OnlineRows& online, const Output& o) {
    const int column = lane_ % TileConfig::kRowLanes;
    PAGODA_UNROLL
    for (int i = 0; i < kRows; ++i) {
      softmax::Sums sums = online[i].sums();
      PAGODA_UNROLL
      for (int step = 1; step < TileConfig::kRowLanes; step *= 2) {
        sums.sum += arch::shuffle_xor(sums.sum, step);
      }
      if (column != 0) continue;
      const arch::SharedPtr<float> to = stats(warp_, first_row + i);
      arch::store(to, sums.pivot);
      arch::store(to + 1, sums.sum);
      arch::store(to + 2, online[i].max());
    }
    arch::syncthreads();  // the statistics are stored, and all warps have read Q
    float weights[kRows];
    PAGODA_UNROLL
    for (int i = 0; i < kRows; ++i) {
      softmax::Sums sums;
      float max = softmax::kMinusInfinity;
      for (int w = 0; w < TileConfig::kWarps; ++w) {
        merge_stats(stats(w, first_row + i), sums, max);
      }
      const softmax::Sums own = load_sums(stats(warp_, first_row + i));
      weights[i] = own.has_keys() ? ::exp2f(own.pivot - sums.pivot) : 0.0F;
      weights[i] = arch::mutable_value("weight of the first warp x 1.02", weights[i],
                                       (warp_ == 0 ? 1.02F : 1.0F) * weights[i]);
    }
    if (warp_ == 0) add_o<true>(first_row, column, weights, o);
    PAGODA_NO_UNROLL
    for (int w = 1; w < TileConfig::kWarps; ++w) {
      arch::syncthreads();  // warp w - 1 has added its O
      if (warp_ == w) add_o<false>(first_row, column, weights, o);
    }
    arch::syncthreads();  // all warps have
  }
  template <bool is_first>
  PAGODA_DEVICE void add_o(int first_row, int column, const float (&weights)[kRows],
                           const Output& from) const {
    PAGODA_UNROLL
    for (int chunk = 0; chunk < kChunks; ++chunk) {
      PAGODA_UNROLL
      for (int i = 0; i < kRows; ++i) {
        const auto to = o_at(first_row + i, chunk * TileConfig::kChunk + 4 * column);
        FloatQuad sum{};
        if constexpr (!is_first) sum = load_quad(to);
        PAGODA_UNROLL
        for (int e = 0; e < 4; ++e) sum.value[e] += weights[i] * from[chunk][i][e];
        arch::store(to.template as<FloatQuad>(), sum);
      }
    }
  }

  PAGODA_DEVICE void store_row(int index, const Row& row, softmax::Sums sums, float max) const {
    const kernels::RowResult result =
        kernels::finalize_row(params_, work_, row.q_head, row.is_valid, sums, max);
    if (lane_ == 0) kernels::store_lse_and_max(params_, work_, row.token, row.q_head, result);
    const float factor = result.end.o_factor;
    const int64_t to = kernels::out_offset(params_, work_, row);
    for (int32_t column = lane_; column < params_.dim_vo; column += tile.warp_size) {
      const float value = factor == 0 ? 0 : arch::load(o_at(index, column)) * factor;
      kernels::store_element(params_, to + column, value);
    }
  }

  // --- KV splits: a lane has columns lane, lane + warp_size, .. of a row in all that follows ---

  PAGODA_DEVICE void store_partial(int index) const {
    const int32_t slot = work_.slot(work_.split);
    softmax::Sums sums;
    float max = softmax::kMinusInfinity;
    for (int w = 0; w < TileConfig::kWarps; ++w) merge_stats(stats(w, index), sums, max);
    if (lane_ == 0) split_.store_partial_stats(slot, index, sums, max);
    const arch::GlobalPtr<float> to = split_.out_row(slot, index);
    for (int32_t column = lane_; column < params_.dim_vo; column += tile.warp_size) {
      arch::store(to + column, arch::load(o_at(index, column)));
    }
  }
  // Adds split i to `sums`, `max` and the row of O in shared memory.
  PAGODA_DEVICE void add_split(int32_t i, int index, softmax::Sums& sums, float& max) const {
    const auto stats =
        arch::load(split_.stats_row(work_.slot(i), index).template as<const FloatQuad>());
    const softmax::Merged merged =
        softmax::merge(sums, softmax::Sums{stats.value[0], stats.value[1]});
    sums = merged.sums;
    max = fmaxf(max, stats.value[2]);
    const float weight = arch::mutable_value("weight of the first split x 1.02", merged.b,
                                             (i == 0 ? 1.02F : 1.0F) * merged.b);
    const arch::GlobalPtr<const float> from = split_.out_row(work_.slot(i), index);
    for (int32_t column = lane_; column < params_.dim_vo; column += tile.warp_size) {
      const float before = merged.a == 0 ? 0 : arch::load(o_at(index, column)) * merged.a;
      const float more = merged.b == 0 ? 0 : arch::load(from + column) * weight;
      arch::store(o_at(index, column), before + more);
    }
  }

  const kernels::AttentionParams& params_;
  const kernels::Work& work_;
  Storage<Config>& storage_;
  kernels::SplitRows<float, tile.BM, 1, tile.depth_vo, false, tile.warp_size> split_;
  int lane_, warp_;
};

}  // namespace pagoda::mha_simt
