// SplitEpilogue: the part of the epilogue of a split row tile that comes before Epilogue. Each
// consumer stores its partial O and statistics in the workspace; the last one to finish merges all
// splits (kernels/common/split_rows.hpp): of tiles of tokens in the accumulators, which Epilogue
// then stores; of packed rows, which are few and have many splits, row by row. Many splits of tiles
// of tokens are merged by all their CTAs (kernels/common/shared_merge.hpp).
#pragma once

#include <cstdint>

#include "kernels/common/shared_merge.hpp"
#include "kernels/common/split_rows.hpp"
#include "kernels/mha_sm90/roles/epilogue.hpp"

namespace pagoda::mha_sm90 {

// All threads of a consumer warpgroup.
template <class Config>
class SplitEpilogue {
 public:
  using Out = typename Operands<Config>::Out;
  using Row = mha_sm90::Row<Config>;
  static constexpr TileConfig tile = Config::tile;
  // A block of rows for each consumer; of latent rows, the columns of each warpgroup.
  using Rows =
      kernels::SplitRows<Out, tile.block_rows, tile.num_multiplying(), tile.out_columns(), true>;

  PAGODA_DEVICE SplitEpilogue(const AttentionParams& params, Storage<Config>& storage,
                              int warpgroup)
      : params_(params), storage_(storage), warpgroup_(warpgroup), rows_(params, warpgroup) {}

  // O in the accumulator layout of wgmma. Returns whether `rows` and `o` now hold the merged rows,
  // which the caller must store; otherwise `o` is lost.
  PAGODA_DEVICE bool run(const Work& work, Row (&rows)[2], float (&o)[tile.out_columns() / 2]) {
    store_partial(work, rows, o);
    if constexpr (!tile.merges_in_registers()) {
      merge_if_last(work);
      return false;
    } else {
      if constexpr (tile.may_share_merge()) {
        if (params_.is_merge_shared) {
          merge_shared(work, rows);
          // Whatever they hold, ptxas would keep their registers during the merge.
          PAGODA_UNROLL
          for (float& value : o) value = 0;
          return false;
        }
      }
      if (!is_last(work)) return false;
      const int thread = thread_of_warpgroup();
      rows_.template merge_accumulators<tile.may_share_merge()>(work, Rows::first_row(thread), rows,
                                                                thread, o);
      return true;
    }
  }

  // The parts of run() for other layouts: four columns of a valid row, and its statistics.
  PAGODA_DEVICE void store_partial_quad(const Work& work, int row, int column,
                                        const kernels::FloatQuad& o) const {
    rows_.store_partial_quad(work.slot(work.split), row, column, o);
  }
  PAGODA_DEVICE void store_partial_stats(const Work& work, int row, softmax::Sums sums,
                                         float max) const {
    rows_.store_partial_stats(work.slot(work.split), row, sums, max);
  }
  // All threads call it when they have stored their part.
  PAGODA_DEVICE void merge_if_last(const Work& work) {
    if (!is_last(work)) return;
    const int first = warpgroup_ * tile.block_rows;
    const int32_t left = work.num_tokens * work.num_heads - first;
    for (int r = arch::warp_idx() % 4; r < tile.block_rows && r < left; r += 4) {
      const Row where = make_row<Config>(params_, work, first + r);
      if (where.is_written) rows_.merge_row(work, r, where);
    }
  }

 private:
  // Tokens: the mainloop has no registers for what follows from it.
  [[nodiscard]] static PAGODA_DEVICE int thread_of_warpgroup() {
    const int thread = tile.merges_in_registers() ? arch::thread_idx_again() : arch::thread_idx();
    return thread % kWarpgroup;
  }
  [[nodiscard]] static PAGODA_DEVICE bool is_first() {
    return arch::thread_idx() % kWarpgroup == 0;
  }
  PAGODA_DEVICE bool is_last(const Work& work) {
    return rows_.arrive_and_check_last(
        work, storage_.arrivals.at(warpgroup_), is_first(),
        [this](arch::Where where) { sync_warpgroup(warpgroup_, where); });
  }

  PAGODA_DEVICE void merge_shared(const Work& work, const Row (&rows)[2]) {
    constexpr int quads = tile.depth_vo > 128 && !tile.widens() ? 4 : 2;  // widened, 4 spill
    constexpr auto blocks =
        tile.is_latent ? kernels::MergeBlocks::kColumns : kernels::MergeBlocks::kRows;
    const kernels::SharedMerge<Out, tile.num_multiplying(), tile.out_columns(), quads, Row, blocks>
        shared(params_, work, warpgroup_, rows);
    const uint32_t parts =
        shared.take_parts(storage_.arrivals.at(warpgroup_), is_first(),
                          [this](arch::Where where) { sync_warpgroup(warpgroup_, where); });
    uint32_t departures = 0;
    if (is_first()) departures = shared.depart();
    shared.merge(parts);
    if (is_first()) shared.end(departures);
  }

  PAGODA_DEVICE void store_partial(const Work& work, const Row (&rows)[2],
                                   const float (&o)[tile.out_columns() / 2]) {
    const int thread = thread_of_warpgroup(), first = Rows::first_row(thread);
    const int32_t slot = work.slot(work.split);
    if constexpr (tile.merges_in_registers()) {
      if (rows[0].is_valid || rows[1].is_valid) {
        rows_.store_accumulators(slot, thread, o);
      }
    }
    PAGODA_UNROLL
    for (int r = 0; r < 2; ++r) {
      if (!rows[r].is_valid) continue;
      const int row = first + 8 * r;
      if constexpr (!tile.merges_in_registers()) {
        const arch::GlobalPtr<float> to = rows_.out_row(slot, row) + 2 * (thread % 4);
        PAGODA_UNROLL
        for (int j = 0; j < tile.depth_vo / 8; ++j) {
          Rows::store_pair(to + 8 * j, o[4 * j + 2 * r], o[4 * j + 2 * r + 1]);
        }
      }
      if (thread % 4 == 0) rows_.store_partial_stats(slot, row, rows[r].sums, rows[r].max);
    }
  }

  const AttentionParams& params_;
  Storage<Config>& storage_;
  int warpgroup_;
  Rows rows_;
};

}  // namespace pagoda::mha_sm90
