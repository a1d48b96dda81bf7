// SplitRows: rows whose keys several CTAs share (KV split). Each CTA stores the partial result of
// its split in a slot of the workspace and increments the counter of the rows. The warpgroup whose
// increment is the last merges all splits in their order, so that the bits do not depend on timing,
// and resets the counter to zero for the next launch.
//
//   partial_out    [slots][blocks][block_rows][depth] fp32, relative to the pivot, not normalised;
//                  or the same of each block in the order of store_accumulators()
//   partial_stats  [slots][blocks][block_rows][4]     fp32: pivot, sum, maximum, unused
//   counters       [slots][blocks]                    the one at the first split's slot is used
#pragma once

#include <cstdint>

#include "arch/fault.hpp"
#include "arch/memory.hpp"
#include "arch/thread.hpp"
#include "arch/warp.hpp"
#include "kernels/common/row_epilogue.hpp"

namespace pagoda::kernels {

struct alignas(16) FloatQuad {
  float value[4];
};

struct alignas(8) FloatPair {
  float low, high;
};

// The rows of one block of a work tile, by one warpgroup. has_all_columns: splits store `depth`
// columns; otherwise only the head dim's. loads_early, with all columns: the merge loads O with the
// statistics, before the weights are known; it takes registers that mha_sm90 does not have.
// row_lanes: lanes that merge a row together; fewer than a warp merge several rows side by side.
template <class T, int block_rows, int blocks, int depth, bool has_all_columns = false,
          int warp_size = 32, bool loads_early = false, int row_lanes = warp_size>
class SplitRows {
 public:
  static constexpr int kStats = 4;

  PAGODA_DEVICE SplitRows(const AttentionParams& params, int block)
      : params_(params), block_(block) {}

  [[nodiscard]] PAGODA_DEVICE arch::GlobalPtr<float> out_row(int32_t slot, int row) const {
    return params_.partial_out + (block_of(slot) * block_rows + row) * depth;
  }
  [[nodiscard]] PAGODA_DEVICE arch::GlobalPtr<float> stats_row(int32_t slot, int row) const {
    return params_.partial_stats + (block_of(slot) * block_rows + row) * kStats;
  }
  // Of a block whose first split is in `slot`.
  [[nodiscard]] PAGODA_DEVICE arch::GlobalPtr<uint32_t> counter(int32_t slot) const {
    return params_.counters + block_of(slot);
  }
  // store_accumulators(): the first of a thread's two rows; the other is 8 further.
  [[nodiscard]] static PAGODA_DEVICE int first_row(int thread) {
    return thread / 32 * 16 + thread % 32 / 4;
  }
  // The first quad of store_accumulators().
  [[nodiscard]] PAGODA_DEVICE arch::GlobalPtr<float> accumulators(int32_t slot, int thread) const {
    return out_row(slot, 0) + 4 * thread;
  }
  static PAGODA_DEVICE void store_pair(arch::GlobalPtr<float> to, float a, float b) {
    arch::store(to.as<FloatPair>(), FloatPair{a, b});
  }
  // Four columns of a row.
  PAGODA_DEVICE void store_partial_quad(int32_t slot, int row, int column,
                                        const FloatQuad& o) const {
    arch::store((out_row(slot, row) + column).template as<FloatQuad>(), o);
  }
  PAGODA_DEVICE void store_partial_stats(int32_t slot, int row, softmax::Sums sums,
                                         float max) const {
    const arch::GlobalPtr<float> stats = stats_row(slot, row);
    store_pair(stats, sums.pivot, sums.sum);
    store_pair(stats + 2, max, 0);
  }

  // Increments the counter of the rows after the warpgroup has stored its split. Returns whether it
  // was the last of work.num_splits increments; then every thread may load all partial results.
  //
  // The first sync orders the stores of all threads before the atomic of one; its release (acq_rel,
  // GPU scope) publishes them, its acquire makes the stores of earlier CTAs visible to that thread,
  // and the second sync to the warpgroup. Causality order is transitive (PTX memory model), so that
  // no other fence is needed. `sync(where)`: a barrier of the warpgroup; `flag`: its word in shared
  // memory.
  template <class Sync>
  PAGODA_DEVICE bool arrive_and_check_last(const Work& work, arch::SharedPtr<uint32_t> flag,
                                           bool is_first, const Sync& sync) {
    arch::complete_stores();
    sync(arch::Where::current());
    if (is_first) {
      const arch::GlobalPtr<uint32_t> arrivals = counter(work.first_slot);
      const uint32_t earlier =
          arch::atomic_add<arch::Order::kAcqRel, arch::Scope::kGpu>(arrivals, 1U);
      const bool is_last = earlier + 1 == static_cast<uint32_t>(work.num_splits);
      if (is_last) arch::store(arrivals, 0U);
      arch::store(flag, is_last ? 1U : 0U);
    }
    sync(arch::Where::current());
    return arch::load(flag) != 0;
  }

  // Merges the splits of a row and stores it where where.is_written, by row_lanes lanes: a lane
  // loads the statistics of one split of each, then all lanes add up O, four columns each at a
  // time. All lanes of the warp call it, for rows of which all or none are valid.
  template <class Row>
  PAGODA_DEVICE void merge_row(const Work& work, int row, const Row& where) {
    const int lane = lane_of_row(), first_lane = arch::lane_idx() - lane;
    Columns o = {};
    softmax::Sums sums;
    float max = softmax::kMinusInfinity;
    const int32_t num_splits = where.is_valid ? work.num_splits : 0;
    for (int32_t round = 0; round < num_splits; round += row_lanes) {
      const int32_t left = num_splits - round;
      const int32_t count = left < row_lanes ? left : row_lanes;
      Splits values;
      if constexpr (loads_early) {
        load_splits(values, work, round, 0, row, [count](int k) { return k < count; });
      }
      softmax::Sums mine;
      if (round + lane < num_splits) {
        const auto stats =
            arch::load(stats_row(work.slot(round + lane), row).template as<const FloatQuad>());
        mine = softmax::Sums{stats.value[0], stats.value[1]};
        max = stats.value[2] > max ? stats.value[2] : max;
      }
      const float pivot = max_of_row(mine.has_keys() ? mine.pivot : softmax::kMinusInfinity);
      const float weight = mine.has_keys() ? ::exp2f(mine.pivot - pivot) : 0.0F;
      const float sum = sum_of_row(mine.has_keys() ? mine.sum * weight : 0.0F);
      const softmax::Merged merged = softmax::merge(sums, softmax::Sums{pivot, sum});
      sums = merged.sums;
      PAGODA_UNROLL
      for (int i = 0; i < kQuads; ++i) {
        PAGODA_UNROLL
        for (int e = 0; e < 4; ++e) o[i].value[e] *= merged.a;
      }
      const float factor =
          arch::mutable_value("weight of the first split x 1.02", weight * merged.b,
                              (lane == 0 ? 1.02F : 1.0F) * weight * merged.b);
      for (int32_t first = 0; first < count; first += kInFlight) {
        float factors[kInFlight];
        PAGODA_UNROLL
        for (int k = 0; k < kInFlight; ++k) {
          factors[k] = arch::shuffle(factor, first_lane + (first + k) % row_lanes);
          if (first + k >= count) factors[k] = 0;
        }
        if (!loads_early || first > 0) {
          load_splits(values, work, round, first, row,
                      [&factors](int k) { return factors[k] != 0; });
        }
        add_splits(o, values, factors);
      }
    }
    finish(work, row, where, sums, max_of_row(max), o);
  }

  // The partial O of two rows, 8 apart, in the accumulators of a thread, as pairs of the first row
  // and the second in turn. Whatever the layout, the thread of the CTA that merges them has the
  // same rows and columns: quads are stored in the order of threads, so that those of a warp are
  // neighbours in memory.
  template <int count>
  PAGODA_DEVICE void store_accumulators(int32_t slot, int thread, const float (&o)[count]) const {
    const arch::GlobalPtr<float> to = accumulators(slot, thread);
    PAGODA_UNROLL
    for (int i = 0; i < count; i += 4) {
      arch::store((to + i * kThreads<count>).template as<FloatQuad>(),
                  FloatQuad{{o[i], o[i + 1], o[i + 2], o[i + 3]}});
    }
  }

  // Merges the splits of these rows in the accumulators of a thread, which returns from
  // arrive_and_check_last; sums and max of `rows` become those of the whole rows. For many rows of
  // few splits, where merge_row, a row at a time, would wait for memory at each. Loads of several
  // splits are in flight together: by itself each would take the latency of L2.
  // has_registers: for O of a split while its weights are not known, which hides the latency of
  // these.
  template <bool has_registers, int count, class Row>
  PAGODA_DEVICE void merge_accumulators(const Work& work, int first_row, Row (&rows)[2], int thread,
                                        float (&o)[count]) const {
    constexpr int stats_in_flight = 4;
    PAGODA_UNROLL
    for (int i = 0; i < count; ++i) o[i] = 0;
    PAGODA_UNROLL
    for (int r = 0; r < 2; ++r) {
      rows[r].sums = softmax::Sums{};
      rows[r].max = softmax::kMinusInfinity;
    }
    PAGODA_NO_UNROLL
    for (int32_t first = 0; first < work.num_splits; first += stats_in_flight) {
      FloatQuad stats[stats_in_flight][2];
      PAGODA_UNROLL
      for (int k = 0; k < stats_in_flight; ++k) {
        PAGODA_UNROLL
        for (int r = 0; r < 2; ++r) {
          stats[k][r] = FloatQuad{{0, 0, softmax::kMinusInfinity, 0}};
          if (rows[r].is_valid && first + k < work.num_splits) {
            stats[k][r] = load_stats(work, first + k, first_row + 8 * r);
          }
        }
      }
      PAGODA_UNROLL
      for (int k = 0; k < stats_in_flight; ++k) {
        PAGODA_UNROLL
        for (int r = 0; r < 2; ++r) {
          const float(&of)[4] = stats[k][r].value;
          if (of[1] != 0 && of[0] > rows[r].sums.pivot) rows[r].sums.pivot = of[0];
          rows[r].max = of[2] > rows[r].max ? of[2] : rows[r].max;
        }
      }
    }
    constexpr int in_flight = count < 128 && has_registers ? count : 32;
    constexpr bool loads_before_weights = has_registers && in_flight == count;
    PAGODA_NO_UNROLL
    for (int32_t split = 0; split < work.num_splits; ++split) {
      FloatQuad values[in_flight / 4];
      const bool has_row = rows[0].is_valid || rows[1].is_valid;
      if (loads_before_weights) load_accumulators<count>(values, has_row, work, split, 0, thread);
      float weights[2];
      PAGODA_UNROLL
      for (int r = 0; r < 2; ++r) {
        weights[r] = 0;
        if (!rows[r].is_valid) continue;
        const FloatQuad stats = load_stats(work, split, first_row + 8 * r);
        if (stats.value[1] == 0) continue;  // no key: O is undefined
        const float weight = ::exp2f(stats.value[0] - rows[r].sums.pivot);
        rows[r].sums.sum += weight * stats.value[1];
        weights[r] = arch::mutable_value("weight of the first split x 1.02", weight,
                                         (split == 0 ? 1.02F : 1.0F) * weight);
      }
      const bool has_weight = weights[0] != 0 || weights[1] != 0;
      PAGODA_UNROLL
      for (int first = 0; first < count; first += in_flight) {
        if (!loads_before_weights) {
          load_accumulators<count>(values, has_weight, work, split, first, thread);
        }
        PAGODA_UNROLL
        for (int i = 0; i < in_flight; ++i) {
          const float weight = weights[i / 2 % 2];
          if (weight != 0) o[first + i] += weight * values[i / 4].value[i % 4];
        }
      }
    }
  }

 private:
  // Threads of a block whose accumulators have `count` registers.
  template <int count>
  static constexpr int kThreads = block_rows* depth / count;
  // Accumulators of a split from number `first` on.
  template <int count, int num_quads>
  PAGODA_DEVICE void load_accumulators(FloatQuad (&values)[num_quads], bool wants, const Work& work,
                                       int32_t split, int first, int thread) const {
    const arch::GlobalPtr<const float> from = accumulators(work.slot(split), thread);
    PAGODA_UNROLL
    for (int i = 0; i < num_quads; ++i) {
      values[i] = FloatQuad{};
      if (!wants) continue;
      values[i] =
          arch::load((from + (first + 4 * i) * kThreads<count>).template as<const FloatQuad>());
    }
  }
  // Pivot, sum, maximum.
  [[nodiscard]] PAGODA_DEVICE FloatQuad load_stats(const Work& work, int32_t split, int row) const {
    return arch::load(stats_row(work.slot(split), row).template as<const FloatQuad>());
  }
  [[nodiscard]] PAGODA_DEVICE int64_t block_of(int32_t slot) const {
    return int64_t{slot} * blocks + block_;
  }

  [[nodiscard]] static PAGODA_DEVICE int lane_of_row() {
    if constexpr (row_lanes == warp_size) return arch::lane_idx();
    return arch::lane_idx() % row_lanes;
  }
  // Columns of a lane: 4 lane .. 4 lane + 3, then the same kSpan further on, ...
  static constexpr int kSpan = 4 * row_lanes;
  static constexpr int kQuads = (depth + kSpan - 1) / kSpan;
  using Columns = FloatQuad[kQuads];
  // Splits whose loads are in flight together: the latency of L2 is paid once for all of them.
  static constexpr int kInFlight = 16 / kQuads;
  using Splits = Columns[kInFlight];

  // The columns of the splits round + first + k with wants(k). A split of weight 0 may not have
  // stored O: unless loads_early it is not loaded.
  template <class Wants>
  PAGODA_DEVICE void load_splits(Splits& values, const Work& work, int32_t round, int32_t first,
                                 int row, const Wants& wants) const {
    PAGODA_UNROLL
    for (int k = 0; k < kInFlight; ++k) {
      const arch::GlobalPtr<const float> from = out_row(work.slot(round + first + k), row);
      PAGODA_UNROLL
      for (int i = 0; i < kQuads; ++i) {
        const int column = kSpan * i + 4 * lane_of_row();
        values[k][i] = FloatQuad{};
        if (wants(k) && column < (has_all_columns ? depth : params_.dim_vo)) {
          values[k][i] = arch::load((from + column).template as<const FloatQuad>());
        }
      }
    }
  }
  static PAGODA_DEVICE void add_splits(Columns& o, const Splits& values,
                                       const float (&factors)[kInFlight]) {
    PAGODA_UNROLL
    for (int k = 0; k < kInFlight; ++k) {
      if (loads_early && factors[k] == 0) continue;  // O may be NaN
      PAGODA_UNROLL
      for (int i = 0; i < kQuads; ++i) {
        PAGODA_UNROLL
        for (int e = 0; e < 4; ++e) o[i].value[e] += factors[k] * values[k][i].value[e];
      }
    }
  }

  template <class Row>
  PAGODA_DEVICE void finish(const Work& work, int row, const Row& where, softmax::Sums sums,
                            float max, const Columns& o) {
    const int lane = lane_of_row();
    const float factor = finish_row(params_, work, where, sums, max, lane == 0 && where.is_written);
    if (!is_out_of<T>(params_)) {
      store_converted(out_row(work.slot(0), row), out_offset(params_, work, where), factor, o,
                      where.is_written);
      return;
    }
    if (!where.is_written) return;
    const arch::GlobalPtr<T> to = kernels::out_row<T>(params_, work, where);
    PAGODA_UNROLL
    for (int i = 0; i < kQuads; ++i) {
      store_quad(to, params_.dim_vo, kSpan * i + 4 * lane, o[i].value, factor);
    }
  }

  // O of another dtype than T. A lane's columns pass through `scratch`, the row of the first split,
  // of which the lane has read them: see kernels::store_converted.
  PAGODA_DEVICE void store_converted(arch::GlobalPtr<float> scratch, int64_t row, float factor,
                                     const Columns& o, bool is_written) const {
    // Lanes beyond the last row have read one that others write.
    if constexpr (row_lanes < warp_size) arch::syncwarp();
    PAGODA_UNROLL
    for (int i = 0; i < kQuads; ++i) {
      const int column = kSpan * i + 4 * lane_of_row();
      if (column < depth && is_written) {
        arch::store((scratch + column).template as<FloatQuad>(), o[i]);
      }
    }
    arch::syncwarp();
    if (!is_written) return;
    PAGODA_NO_UNROLL
    for (int column = lane_of_row(); column < params_.dim_vo; column += row_lanes) {
      const float value = factor == 0 ? 0 : arch::load(scratch + column) * factor;
      store_element(params_, row + column, value);
    }
  }

  static PAGODA_DEVICE float max_of_row(float value) {
    PAGODA_UNROLL
    for (int step = row_lanes / 2; step > 0; step /= 2) {
      const float other = arch::shuffle_xor(value, step);
      value = other > value ? other : value;
    }
    return value;
  }
  static PAGODA_DEVICE float sum_of_row(float value) {
    PAGODA_UNROLL
    for (int step = row_lanes / 2; step > 0; step /= 2) value += arch::shuffle_xor(value, step);
    return value;
  }

  const AttentionParams& params_;
  int block_;
};

}  // namespace pagoda::kernels
