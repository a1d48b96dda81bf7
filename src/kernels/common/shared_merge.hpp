// SharedMerge: partial results of a split row tile (split_rows.hpp) merged by all of its CTAs. One
// CTA reads them at the rate of one multiprocessor: many take as long as dozens of KV tiles.
//
// Each warpgroup stores its partial result and arrives at the counter of its block of rows. One
// that is not the last waits a while until all have arrived; then each merges a part of the block.
// One that has waited in vain leaves its part to the last, which never waits: no CTA depends on
// another being resident. Which warpgroup merges a part does not change a bit of the result.
//
//   counters[first slot]    low 16 bits: arrivals; high 16 bits: the parts left to the last
//   counters[second slot]   warpgroups that will not access the first any more; the last of them
//                           resets both to zero for the next launch
#pragma once

#include <cstdint>

#include "arch/fault.hpp"
#include "arch/memory.hpp"
#include "arch/thread.hpp"
#include "kernels/common/row_epilogue.hpp"
#include "kernels/common/split_rows.hpp"
#include "softmax/online.hpp"

namespace pagoda::kernels {

// The rows of one block of a work tile of a TileGrid, whose splits have neighbouring slots, after
// SplitRows::store_accumulators().
template <class T, int blocks, int depth>
class SharedMerge {
 public:
  PAGODA_DEVICE SharedMerge(const AttentionParams& params, int block)
      : params_(params), rows_(params, block) {}

  // The parts of the block that this warpgroup merges, a bit each, when it has stored its partial
  // result. The barriers and the orders of the atomics publish partial results as those of
  // SplitRows::arrive_and_check_last() do, which has the same arguments.
  template <class Sync>
  PAGODA_DEVICE uint32_t take_parts(const Work& work, arch::SharedPtr<uint32_t> word, bool is_first,
                                    const Sync& sync) const {
    arch::complete_stores();
    sync(arch::Where::current());
    if (is_first) arch::store(word, arrive(work));
    sync(arch::Where::current());
    return arch::load(word);
  }

  // Merges `parts` and stores their rows and columns. row_at(r): row r of the block. A unit is the
  // rows of one warp, and kQuads of their accumulators' quads.
  template <class RowAt>
  PAGODA_DEVICE void merge(const Work& work, uint32_t parts, const RowAt& row_at) const {
    if (parts == 0) return;
    constexpr int units = 4 * (kAccumulators / 4 / kQuads);
    const int num_parts =
        work.num_splits < static_cast<int>(kMostParts) ? work.num_splits : kMostParts;
    PAGODA_NO_UNROLL
    for (int unit = arch::warp_idx() % 4; unit < units; unit += 4) {
      const int part = unit * num_parts / units;
      if ((parts >> part & 1U) == 0) continue;
      merge_unit(work, unit % 4, unit / 4 * kQuads, row_at);
    }
  }

  // One thread calls it last.
  PAGODA_DEVICE void depart(const Work& work) const {
    const arch::GlobalPtr<uint32_t> departures = rows_.counter(work.next_slot);
    const uint32_t before =
        arch::atomic_add<arch::Order::kAcqRel, arch::Scope::kGpu>(departures, 1U);
    if (before + 1 != static_cast<uint32_t>(work.num_splits)) return;
    arch::store(departures, 0U);
    arch::store(rows_.counter(work.first_slot), 0U);
  }

 private:
  static constexpr int block_rows = 64, kThreads = 128, kAccumulators = depth / 2, kQuads = 2;
  static constexpr uint32_t kMostParts = 16, kOnePart = 1U << 16U, kArrivals = kOnePart - 1;
  // Each takes as long as L2's latency, all together 15 to 20 us.
  static constexpr int kPolls = 40;
  using Rows = SplitRows<T, block_rows, blocks, depth, true>;

  [[nodiscard]] PAGODA_DEVICE uint32_t arrive(const Work& work) const {
    const arch::GlobalPtr<uint32_t> arrivals = rows_.counter(work.first_slot);
    const auto all = static_cast<uint32_t>(work.num_splits);
    const uint32_t before = arch::atomic_add<arch::Order::kAcqRel, arch::Scope::kGpu>(arrivals, 1U);
    const uint32_t ticket = before & kArrivals;
    const uint32_t own = ticket < kMostParts ? 1U << ticket : 0;
    if (ticket + 1 == all) return own | before / kOnePart;
    if (own == 0) return 0;
    for (int i = 0;; ++i) {
      if ((arch::load_acquire<arch::Scope::kGpu>(arrivals) & kArrivals) == all) return own;
      if (i < kPolls) continue;
      const uint32_t seen =
          arch::atomic_add<arch::Order::kRelaxed, arch::Scope::kGpu>(arrivals, own * kOnePart);
      if ((seen & kArrivals) != all) return 0;
      // The last has arrived in between, and does not know.
    }
  }

  template <class RowAt>
  PAGODA_DEVICE void merge_unit(const Work& work, int warp, int first_quad,
                                const RowAt& row_at) const {
    constexpr int in_flight = 8;  // splits, whose loads are in flight together
    const int lane = arch::lane_idx(), first_row = 16 * warp + lane / 4;
    const decltype(row_at(0)) rows[2] = {row_at(first_row), row_at(first_row + 8)};
    // Splits that hold the row: numbers, not conditions, of which a thread has seven. With those
    // taken, ptxas makes every load below wait for the one before.
    const int32_t splits_of_row[2] = {rows[0].is_valid ? work.num_splits : 0,
                                      rows[1].is_valid ? work.num_splits : 0};
    const int32_t splits =
        splits_of_row[0] > splits_of_row[1] ? splits_of_row[0] : splits_of_row[1];
    softmax::Sums sums[2];
    float max[2] = {softmax::kMinusInfinity, softmax::kMinusInfinity};
    float o[4 * kQuads] = {};
    PAGODA_NO_UNROLL
    for (int32_t first = 0; first < splits; first += in_flight) {
      // All loads before the first weight is known: their latencies overlap.
      FloatQuad stats[in_flight][2], values[in_flight][kQuads];
      const arch::GlobalPtr<float> row_stats = rows_.stats_row(work.slot(first), first_row);
      const arch::GlobalPtr<float> of_thread =
          rows_.accumulators(work.slot(first), 32 * warp + lane) + 4 * first_quad * kThreads;
      PAGODA_UNROLL
      for (int k = 0; k < in_flight; ++k) {
        PAGODA_UNROLL
        for (int r = 0; r < 2; ++r) {
          stats[k][r] = FloatQuad{{0, 0, softmax::kMinusInfinity, 0}};
          if (first + k < splits_of_row[r]) {
            constexpr int of_slot = blocks * block_rows * Rows::kStats;
            stats[k][r] = arch::load(
                (row_stats + (k * of_slot + 8 * r * Rows::kStats)).template as<const FloatQuad>());
          }
        }
        PAGODA_UNROLL
        for (int q = 0; q < kQuads; ++q) {
          values[k][q] = FloatQuad{};
          if (first + k < splits) {
            constexpr int of_slot = blocks * block_rows * depth;
            values[k][q] = arch::load(
                (of_thread + (k * of_slot + 4 * q * kThreads)).template as<const FloatQuad>());
          }
        }
      }
      PAGODA_UNROLL
      for (int r = 0; r < 2; ++r) {
        float pivot = sums[r].pivot;
        PAGODA_UNROLL
        for (int k = 0; k < in_flight; ++k) {
          const float(&of)[4] = stats[k][r].value;
          if (of[1] != 0 && of[0] > pivot) pivot = of[0];
          max[r] = of[2] > max[r] ? of[2] : max[r];
        }
        const float kept = sums[r].sum != 0 ? ::exp2f(sums[r].pivot - pivot) : 0.0F;
        sums[r] = softmax::Sums{pivot, sums[r].sum * kept};
        PAGODA_UNROLL
        for (int q = 0; q < kQuads; ++q) {
          o[4 * q + 2 * r] *= kept;
          o[4 * q + 2 * r + 1] *= kept;
        }
        PAGODA_UNROLL
        for (int k = 0; k < in_flight; ++k) {
          const float(&of)[4] = stats[k][r].value;
          if (of[1] == 0) continue;  // no key: O is undefined
          const float weight = ::exp2f(of[0] - pivot);
          sums[r].sum += weight * of[1];
          const float factor = arch::mutable_value("weight of the first split x 1.02", weight,
                                                   (first + k == 0 ? 1.02F : 1.0F) * weight);
          PAGODA_UNROLL
          for (int q = 0; q < kQuads; ++q) {
            o[4 * q + 2 * r] += factor * values[k][q].value[2 * r];
            o[4 * q + 2 * r + 1] += factor * values[k][q].value[2 * r + 1];
          }
        }
      }
    }
    PAGODA_UNROLL
    for (int r = 0; r < 2; ++r) {
      store_row(work, rows[r], sums[r], max[r], r, first_quad, o);
    }
  }

  // Row `r` of a thread.
  template <class Row>
  PAGODA_DEVICE void store_row(const Work& work, const Row& row, softmax::Sums sums, float max,
                               int r, int first_quad, const float (&o)[4 * kQuads]) const {
    if (!row.is_written) return;
    const int lane = arch::lane_idx(), first_column = 8 * first_quad + 2 * (lane % 4);
    const float factor =
        finish_row(params_, work, row, sums, max, first_quad == 0 && lane % 4 == 0);
    if (is_out_of<T>(params_)) {
      const arch::GlobalPtr<T> to = out_row<T>(params_, work, row);
      const bool is_aligned = to.address() % 4 == 0;
      PAGODA_UNROLL
      for (int q = 0; q < kQuads; ++q) {
        const int column = first_column + 8 * q;
        if (column >= params_.dim_vo) continue;
        store_pair(to, column, scaled_pair<T>(o[4 * q + 2 * r], o[4 * q + 2 * r + 1], factor),
                   is_aligned);
      }
      return;
    }
    const int64_t offset = out_offset(params_, work, row);
    PAGODA_UNROLL
    for (int q = 0; q < kQuads; ++q) {
      PAGODA_NO_UNROLL
      for (int i = 0; i < 2; ++i) {  // rare: little code
        const int column = first_column + 8 * q + i;
        const float value = i == 0 ? o[4 * q + 2 * r] : o[4 * q + 2 * r + 1];
        if (column >= params_.dim_vo) break;
        store_element(params_, offset + column, factor == 0 ? 0 : value * factor);
      }
    }
  }

  const AttentionParams& params_;
  Rows rows_;
};

}  // namespace pagoda::kernels
