// SharedMerge: partial results of a split row tile (split_rows.hpp) merged by all of its CTAs. One
// CTA reads them at the rate of one multiprocessor: many take as long as dozens of KV tiles.
//
// Each warpgroup stores its partial result and arrives at the counter of its block of rows. One
// that is not the last waits a while until all have arrived; then each merges a part of the
// columns, a warp 16 rows of it. One that has waited in vain leaves its part to the last, which
// never waits: no CTA depends on another being resident. Which warpgroup merges a part does not
// change a bit of the result.
//
//   counters[first slot]    low 16 bits: arrivals; high 16 bits: the parts left to the last
//   counters[second slot]   warpgroups that will not access the first any more; the last of them
//                           resets both to zero for the next launch
//
// A call of 20 us runs this code once, for one or two chains of loads: what it takes is the latency
// of L2, and its own instructions, which are fetched for the first time. So rows are not made
// again, every load of a group of splits is issued before the first weight is known, and each of
// the four lanes that share a row makes a quarter of its weights.
#pragma once

#include <cstdint>
#include <cstring>

#include "arch/fault.hpp"
#include "arch/math.hpp"
#include "arch/memory.hpp"
#include "arch/thread.hpp"
#include "arch/warp.hpp"
#include "kernels/common/row_epilogue.hpp"
#include "kernels/common/row_lines.hpp"
#include "kernels/common/split_rows.hpp"
#include "softmax/online.hpp"

namespace pagoda::kernels {

// What the blocks of a slot are.
enum class MergeBlocks : uint8_t {
  kRows,     // rows of a work tile of a TileGrid, whose splits have neighbouring slots
  kColumns,  // `depth` columns of the same rows of a stream-K partition, of which no CTA has parts
             // of two row tiles: the slots of splits are Work::slot_step apart
};

// One block of a work tile after SplitRows::store_accumulators(). most_quads: quads of accumulators
// that are merged together, of up to 8 splits, or half as many of 16; their loads take 32 registers
// each.
template <class T, int blocks, int depth, int most_quads, class Row,
          MergeBlocks kind = MergeBlocks::kRows>
class SharedMerge {
 public:
  // `rows`: the two of this thread, 8 apart, whose accumulators it has stored.
  PAGODA_DEVICE SharedMerge(const AttentionParams& params, const Work& work, int block,
                            const Row (&rows)[2])
      : params_(params), work_(work), rows_(rows), splits_(params, block), block_(block) {}

  // The parts of the block that this warpgroup merges, a bit each, when it has stored its partial
  // result. The barriers and the orders of the atomics publish partial results as those of
  // SplitRows::arrive_and_check_last() do, which has the same arguments.
  template <class Sync>
  PAGODA_DEVICE uint32_t take_parts(arch::SharedPtr<uint32_t> word, bool is_first,
                                    const Sync& sync) const {
    arch::complete_stores();
    sync(arch::Where::current());
    if (is_first) arch::store(word, arrive());
    sync(arch::Where::current());
    return arch::load(word);
  }

  // Merges `parts` and stores their columns.
  PAGODA_DEVICE void merge(uint32_t parts) const {
    const int quads = kPaddedQuads >> part_shift(), thread = arch::thread_idx_again() % kThreads;
    PAGODA_NO_UNROLL
    for (; parts != 0; parts &= parts - 1) {
      int first = lowest_bit(parts) * quads;
      const int end = first + quads < kQuads ? first + quads : kQuads;
      PAGODA_NO_UNROLL
      while (first < end) {
        if constexpr (has_columns) {
          first += merge_columns(thread, first);
          continue;
        }
        Merged<most_quads> rows;
        int count = most_quads;
        if (has_few()) {
          add<8, most_quads>(thread, first, rows);
        } else {
          count = most_quads / 2;
          add<16, most_quads / 2>(thread, first, rows);
        }
        store(thread, first, count, rows);
        first += count;
      }
    }
  }

  // One thread calls both, depart() right after take_parts() and end() last: the atomic takes a
  // latency of L2. Relaxed: the first counter is accessed by atomics only, and no thread that has
  // departed accesses it again.
  [[nodiscard]] PAGODA_DEVICE uint32_t depart() const {
    return arch::atomic_add<arch::Order::kRelaxed, arch::Scope::kGpu>(
        splits_.counter(work_.next_slot), 1U);
  }
  // `before`: what depart() has returned.
  PAGODA_DEVICE void end(uint32_t before) const {
    if (before + 1 != static_cast<uint32_t>(work_.num_splits)) return;
    arch::atomic_exchange<arch::Order::kRelaxed, arch::Scope::kGpu>(
        splits_.counter(work_.next_slot), 0U);
    arch::atomic_exchange<arch::Order::kRelaxed, arch::Scope::kGpu>(
        splits_.counter(work_.first_slot), 0U);
  }

 private:
  static constexpr bool has_columns = kind == MergeBlocks::kColumns;
  static constexpr int block_rows = 64, kThreads = 128;
  static constexpr int kQuads = depth / 8;  // of a thread: two columns of its two rows each
  static constexpr int kPaddedQuads = depth <= 64 ? 8 : depth <= 128 ? 16 : 32;
  static constexpr uint32_t kOnePart = 1U << 16U, kArrivals = kOnePart - 1;
  // Each takes as long as L2's latency, all together 15 to 20 us.
  static constexpr int kPolls = 40;
  using Splits = SplitRows<T, block_rows, blocks, depth, true>;

  [[nodiscard]] PAGODA_DEVICE bool has_few() const { return work_.num_splits <= 8; }
  // The block has 1 << part_shift() parts, at most as many as splits, of whole groups of quads. Of
  // 96 columns the last parts are empty.
  [[nodiscard]] PAGODA_DEVICE int part_shift() const {
    constexpr int most = kPaddedQuads / most_quads;  // with few splits; else twice as many
    const int32_t splits = work_.num_splits;
    if (splits >= 16 && 2 * most >= 16) return 4;
    if (splits >= 8 && (most >= 8 || !has_few())) return 3;
    return splits >= 4 ? 2 : 1;
  }
  [[nodiscard]] static PAGODA_DEVICE int lowest_bit(uint32_t bits) {
    const auto power = static_cast<float>(bits & (~bits + 1));  // its exponent is the number
    uint32_t word = 0;
    memcpy(&word, &power, sizeof word);
    return static_cast<int>(word >> 23U) - 127;
  }

  [[nodiscard]] PAGODA_DEVICE uint32_t arrive() const {
    const arch::GlobalPtr<uint32_t> arrivals = splits_.counter(work_.first_slot);
    const auto all = static_cast<uint32_t>(work_.num_splits);
    const uint32_t before = arch::atomic_add<arch::Order::kAcqRel, arch::Scope::kGpu>(arrivals, 1U);
    const uint32_t ticket = before & kArrivals;
    const uint32_t own = ticket < 1U << part_shift() ? 1U << ticket : 0;
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

  // Quads of the thread's two rows.
  template <int quads>
  struct Merged {
    softmax::Sums sums[2] = {};
    float o[quads][4] = {};
  };

  // Of columns. Returns how many quads it has merged and stored: of up to four splits twice as
  // many. Each number has code of its own, of which a call fetches one.
  PAGODA_DEVICE int merge_columns(int thread, int first) const {
    const auto merge = [&]<int in_flight, int count>() {
      Merged<count> rows;
      add<in_flight, count>(thread, first, rows);
      store(thread, first, count, rows);
      return count;
    };
    if (work_.num_splits <= 4) return merge.template operator()<4, 2 * most_quads>();
    if (has_few()) return merge.template operator()<8, most_quads>();
    return merge.template operator()<16, most_quads / 2>();
  }

  // Adds up `count` quads from `first` on over all splits, in groups of `in_flight`.
  template <int in_flight, int count, int quads>
  PAGODA_DEVICE void add(int thread, int first, Merged<quads>& rows) const {
    constexpr int of_lane = in_flight / 4;
    const int32_t slots = has_columns ? work_.slot_step : 1;  // from a split to the next
    const int32_t slot_floats = slots * (blocks * block_rows * depth);
    const int32_t slot_stats = slots * (blocks * block_rows * Splits::kStats);
    const int32_t last = work_.num_splits - 1;
    const bool has_row = rows_[0].is_valid || rows_[1].is_valid;
    const arch::GlobalPtr<const float> of_thread =
        splits_.accumulators(work_.first_slot, thread) + 4 * kThreads * first;
    const arch::GlobalPtr<const float> row_stats =
        splits_.stats_row(work_.first_slot, Splits::first_row(thread));
    PAGODA_NO_UNROLL
    for (int32_t split = 0; split <= last; split += in_flight) {
      // Past the last split its own again, with weight 0: no load depends on a condition of its
      // own, of which ptxas has seven. Without them it makes loads wait for each other.
      FloatPair stats[of_lane][2] = {};  // pivot, sum
      FloatQuad values[in_flight][count] = {};
      if (has_row) {
        PAGODA_UNROLL
        for (int i = 0; i < of_lane; ++i) {
          const int32_t of = split + 4 * i + thread % 4;
          const arch::GlobalPtr<const float> from =
              row_stats + (of < last ? of : last) * slot_stats;
          PAGODA_UNROLL
          for (int r = 0; r < 2; ++r) {
            if (!rows_[r].is_valid) continue;
            stats[i][r] =
                arch::load((from + 8 * r * Splits::kStats).template as<const FloatPair>());
          }
        }
        PAGODA_UNROLL
        for (int k = 0; k < in_flight; ++k) {
          const int32_t of = split + k;
          const arch::GlobalPtr<const float> from =
              of_thread + (of < last ? of : last) * slot_floats;
          PAGODA_UNROLL
          for (int q = 0; q < count; ++q) {
            values[k][q] = arch::load((from + q * 4 * kThreads).template as<const FloatQuad>());
          }
        }
      }
      PAGODA_UNROLL
      for (int r = 0; r < 2; ++r) {
        FloatPair of_splits[of_lane];
        PAGODA_UNROLL
        for (int i = 0; i < of_lane; ++i) of_splits[i] = stats[i][r];
        float weights[of_lane];
        const float kept = find_weights(split + thread % 4, rows_[r].is_valid ? last : -1,
                                        of_splits, rows.sums[r], weights);
        PAGODA_UNROLL
        for (int q = 0; q < count; ++q) {
          rows.o[q][2 * r] *= kept;
          rows.o[q][2 * r + 1] *= kept;
        }
        PAGODA_UNROLL
        for (int k = 0; k < in_flight; ++k) {
          const float weight = arch::shuffle_of<4>(weights[k / 4], k % 4);
          PAGODA_UNROLL
          for (int q = 0; q < count; ++q) {
            if (weight == 0) continue;  // no key: O is undefined
            rows.o[q][2 * r] += weight * values[k][q].value[2 * r];
            rows.o[q][2 * r + 1] += weight * values[k][q].value[2 * r + 1];
          }
        }
      }
    }
  }

  // Adds a group of splits to the sums of a row. `of_splits`: pivots and sums of splits `first`,
  // `first` + 4, .., of which those after `last` do not count. Sets `weights`, the factors of their
  // O, and returns the factor of the O of earlier groups. All lanes of a warp call it.
  template <int count>
  static PAGODA_DEVICE float find_weights(int32_t first, int32_t last,
                                          const FloatPair (&of_splits)[count], softmax::Sums& row,
                                          float (&weights)[count]) {
    float sums[count], pivot = row.pivot;
    PAGODA_UNROLL
    for (int i = 0; i < count; ++i) {
      sums[i] = first + 4 * i <= last ? of_splits[i].high : 0;
      if (sums[i] != 0 && of_splits[i].low > pivot) pivot = of_splits[i].low;
    }
    pivot = max_of_row(pivot);
    float sum = 0;
    PAGODA_UNROLL
    for (int i = 0; i < count; ++i) {
      const float weight = sums[i] != 0 ? arch::exp2_approx(of_splits[i].low - pivot) : 0.0F;
      sum += weight * sums[i];
      weights[i] = arch::mutable_value("weight of the first split x 1.02", weight,
                                       (first + 4 * i == 0 ? 1.02F : 1.0F) * weight);
    }
    const float kept = row.sum != 0 ? arch::exp2_approx(row.pivot - pivot) : 0.0F;
    row = softmax::Sums{pivot, row.sum * kept + sum_of_row(sum)};
    return kept;
  }
  // Over the four lanes that share a row.
  static PAGODA_DEVICE float max_of_row(float value) {
    PAGODA_UNROLL
    for (int step = 1; step <= 2; step *= 2) {
      const float other = arch::shuffle_xor(value, step);
      value = other > value ? other : value;
    }
    return value;
  }
  static PAGODA_DEVICE float sum_of_row(float value) {
    value += arch::shuffle_xor(value, 1);
    return value + arch::shuffle_xor(value, 2);
  }

  // The maximum of the scores of row `row` of the block.
  [[nodiscard]] PAGODA_DEVICE float max_of_splits(int row) const {
    float max = softmax::kMinusInfinity;
    if (params_.row_max == nullptr) return max;
    PAGODA_NO_UNROLL
    for (int32_t split = 0; split < work_.num_splits; ++split) {
      const float of = arch::load(splits_.stats_row(work_.slot(split), row) + 2);
      max = of > max ? of : max;
    }
    return max;
  }

  // What finish_row() and out_row() ask of a row. `r` may be an index of a loop that is not
  // unrolled: rows_ stays in registers.
  struct Place {
    int32_t token, q_head;
    bool is_valid, is_written;
  };
  [[nodiscard]] PAGODA_DEVICE Place place(int r) const {
    return {r == 0 ? rows_[0].token : rows_[1].token, r == 0 ? rows_[0].q_head : rows_[1].q_head,
            r == 0 ? rows_[0].is_valid : rows_[1].is_valid,
            r == 0 ? rows_[0].is_written : rows_[1].is_written};
  }

  // Stores `count` quads from `first` on. What few calls ask for is little code.
  template <int quads>
  PAGODA_DEVICE void store(int thread, int first, int count, const Merged<quads>& rows) const {
    const int block_column = has_columns ? block_ * depth : 0;
    const int first_column = block_column + 8 * first + 2 * (thread % 4);
    const int left = block_column + 8 * (first + count);
    const int end = left < params_.dim_vo ? left : params_.dim_vo;
    float factors[2];
    if (wants_only_o(params_)) {
      PAGODA_UNROLL
      for (int r = 0; r < 2; ++r) {
        factors[r] = o_factor(params_, work_, rows_[r].is_valid, rows.sums[r]);
      }
    } else {
      PAGODA_NO_UNROLL
      for (int r = 0; r < 2; ++r) {
        const Place row = place(r);
        const softmax::Sums sums{r == 0 ? rows.sums[0].pivot : rows.sums[1].pivot,
                                 r == 0 ? rows.sums[0].sum : rows.sums[1].sum};
        const float factor = finish_row(
            params_, work_, row, sums,
            row.is_valid ? max_of_splits(Splits::first_row(thread) + 8 * r) : 0,
            row.is_written && first == 0 && thread % 4 == 0 && (!has_columns || block_ == 0));
        if (r == 0) factors[0] = factor;
        factors[1] = factor;
      }
    }
    if constexpr (has_columns && quads % 4 == 0) {
      if (has_whole_lines<T, blocks * depth>(params_)) {
        float o[4 * quads];
        PAGODA_UNROLL
        for (int i = 0; i < 4 * quads; ++i) o[i] = rows.o[i / 4][i % 4];
        PAGODA_UNROLL
        for (int r = 0; r < 2; ++r) {
          store_lines(out_row<T>(params_, work_, rows_[r]), block_column + 8 * first, o, 2 * r,
                      factors[r], rows_[r].is_written);
        }
        return;
      }
    }
    // Lines or single elements: pairs would be code for rare strides.
    constexpr bool has_pairs = !has_columns || quads % 4 != 0;
    if (has_pairs && is_out_of<T>(params_)) {
      PAGODA_UNROLL
      for (int r = 0; r < 2; ++r) {
        if (!rows_[r].is_written) continue;
        const arch::GlobalPtr<T> to = out_row<T>(params_, work_, rows_[r]);
        const bool is_aligned = to.address() % 4 == 0;
        PAGODA_UNROLL
        for (int q = 0; q < quads; ++q) {
          const int column = first_column + 8 * q;
          if (column >= end) continue;
          store_pair(to, column, scaled_pair<T>(rows.o[q][2 * r], rows.o[q][2 * r + 1], factors[r]),
                     is_aligned);
        }
      }
      return;
    }
    PAGODA_NO_UNROLL
    for (int i = 0; i < 4 * quads; ++i) {
      const int r = i / 2 % 2, column = first_column + i / 4 * 8 + i % 2;
      float value = rows.o[0][0];
      PAGODA_UNROLL
      for (int k = 1; k < 4 * quads; ++k) value = i == k ? rows.o[k / 4][k % 4] : value;
      const Place row = place(r);
      const float factor = r == 0 ? factors[0] : factors[1];
      if (!row.is_written || column >= end) continue;
      store_element(params_, out_offset(params_, work_, row) + column,
                    factor == 0 ? 0 : value * factor);
    }
  }

  const AttentionParams& params_;
  const Work& work_;
  const Row (&rows_)[2];
  Splits splits_;
  int block_;
};

}  // namespace pagoda::kernels
