// Split rows: a piece leaves its partial result in a slot of the workspace; the warpgroup that arrives
// last at the unit's counter merges all pieces in their order, so that the bits do not depend on
// timing, and leaves the counter at zero for the next launch.
//
//   partial_out    [slots][num_consumers][64][depth_vo] fp32, relative to the pivot
//   partial_stats  [slots][num_consumers][64][4]        fp32: pivot, sum, maximum, unused
//   counters       [slots][num_consumers]               at the unit's first slot
#pragma once

#include <cstdint>

#include "arch/memory.hpp"
#include "kernels/sm90/store.hpp"

namespace pagoda::sm90 {

struct alignas(8) FloatPair {
  float low, high;
};
struct alignas(16) FloatQuad {
  float value[4];
};

template <class Config>
class Partial {
 public:
  using Ops = Operands<Config>;
  using T = typename Config::T;
  static constexpr TileConfig tile = Config::tile;
  static constexpr int kStats = 4;

  PAGODA_DEVICE Partial(const AttentionParams& params, Storage<Config>& storage, int warpgroup)
      : params_(params), storage_(storage), warpgroup_(warpgroup) {}

  // All threads of the warpgroup.
  PAGODA_DEVICE void run(const Work& work, const Row (&rows)[2],
                         const float (&o)[tile.depth_vo / 2]) {
    leave(work, rows, o);
    merge_if_last(work);
  }

  // The same in parts: four columns of a row that is valid, its statistics, and, by all threads, the end.
  PAGODA_DEVICE void leave_quad(const Work& work, int row, int column, const FloatQuad& o) const {
    arch::store(reinterpret_cast<FloatQuad*>(out_row(work.slot(work.piece), row) + column), o);
  }
  PAGODA_DEVICE void leave_stats(const Work& work, int row, softmax::Sums sums, float max) const {
    arch::store(reinterpret_cast<FloatQuad*>(stats_row(work.slot(work.piece), row)),
                FloatQuad{{sums.pivot, sums.sum, max, 0}});
  }
  PAGODA_DEVICE void merge_if_last(const Work& work) {
    if (!arrives_last(work)) return;
    constexpr int rows = tile.rows == RowKind::kPacked ? tile.packed_rows() : kRows;
    for (int r = arch::warp_idx() % 4; r < rows; r += 4) merge_row(work, r);
  }

 private:
  [[nodiscard]] PAGODA_DEVICE int64_t block(int32_t slot) const {
    return int64_t{slot} * tile.num_consumers + warpgroup_;
  }
  [[nodiscard]] PAGODA_DEVICE float* out_row(int32_t slot, int row) const {
    return params_.partial_out + (block(slot) * kRows + row) * tile.depth_vo;
  }
  [[nodiscard]] PAGODA_DEVICE float* stats_row(int32_t slot, int row) const {
    return params_.partial_stats + (block(slot) * kRows + row) * kStats;
  }

  PAGODA_DEVICE void leave(const Work& work, const Row (&rows)[2],
                           const float (&o)[tile.depth_vo / 2]) {
    const int lane = arch::lane_idx();
    const int first = 16 * (arch::warp_idx() % 4) + lane / 4;
    const int32_t slot = work.slot(work.piece);
    PAGODA_UNROLL
    for (int r = 0; r < 2; ++r) {
      if (!rows[r].is_valid) continue;
      const int row = first + 8 * r;
      float* const to = out_row(slot, row) + 2 * (lane % 4);
      PAGODA_UNROLL
      for (int j = 0; j < tile.depth_vo / 8; ++j) {
        store_float2(to + 8 * j, o[4 * j + 2 * r], o[4 * j + 2 * r + 1]);
      }
      if (lane % 4 == 0) leave_stats(work, row, rows[r].sums, rows[r].online.max());
    }
  }

  static PAGODA_DEVICE void store_float2(float* to, float a, float b) {
    arch::store(reinterpret_cast<FloatPair*>(to), FloatPair{a, b});
  }

  // One thread's atomic releases what its warpgroup has left, and acquires for it what the earlier
  // arrivals left: the barriers before and after it order memory, and causality order is transitive
  // (PTX memory model). No thread needs a fence of its own.
  PAGODA_DEVICE bool arrives_last(const Work& work) {
    sync_warpgroup(warpgroup_);
    if (arch::thread_idx() % kWarpgroup == 0) {
      uint32_t* const counter = params_.counters + block(work.first_slot);
      const uint32_t earlier =
          arch::atomic_add<arch::Order::kAcqRel, arch::Scope::kGpu>(counter, 1U);
      const bool is_last = earlier + 1 == static_cast<uint32_t>(work.num_pieces);
      if (is_last) arch::store(counter, 0U);
      arch::store(storage_.arrivals.at(warpgroup_), is_last ? 1U : 0U);
    }
    sync_warpgroup(warpgroup_);
    return arch::load(storage_.arrivals.at(warpgroup_)) != 0;
  }

  // Columns of a lane: quads 4 lane, 4 lane + 128, ...
  static constexpr int kQuads = (tile.depth_vo + 127) / 128;
  using Columns = FloatQuad[kQuads];
  // Pieces whose loads are in flight together: the latency of L2 is paid once for all of them.
  static constexpr int kInFlight = 16 / kQuads;

  // A warp: each lane a piece for the sums, then a share of the columns.
  PAGODA_DEVICE void merge_row(const Work& work, int row) {
    const Row where = make_row<Config>(params_, work, warpgroup_ * kRows + row);
    if (!where.is_written) return;
    const int lane = arch::lane_idx();
    Columns o = {};
    softmax::Sums sums;
    float max = softmax::kMinusInfinity;
    const int32_t num_pieces = where.is_valid ? work.num_pieces : 0;
    for (int32_t round = 0; round < num_pieces; round += 32) {
      softmax::Sums mine;
      if (round + lane < num_pieces) {
        const auto stats =
            arch::load(reinterpret_cast<const FloatQuad*>(stats_row(work.slot(round + lane), row)));
        mine = softmax::Sums{stats.value[0], stats.value[1]};
        max = stats.value[2] > max ? stats.value[2] : max;
      }
      const float pivot = max_of_warp(mine.has_keys() ? mine.pivot : softmax::kMinusInfinity);
      const float weight = mine.has_keys() ? ::exp2f(mine.pivot - pivot) : 0.0F;
      const float sum = sum_of_warp(mine.has_keys() ? mine.sum * weight : 0.0F);
      const softmax::Merged merged = softmax::merge(sums, softmax::Sums{pivot, sum});
      sums = merged.sums;
      PAGODA_UNROLL
      for (int i = 0; i < kQuads; ++i) {
        PAGODA_UNROLL
        for (int e = 0; e < 4; ++e) o[i].value[e] *= merged.a;
      }
      const int32_t left = num_pieces - round;
      const int32_t count = left < 32 ? left : 32;
      for (int32_t first = 0; first < count; first += kInFlight) {
        add_pieces(o, work, round, first, count, row, weight * merged.b);
      }
    }
    finish(work, where, sums, max_of_warp(max), o);
  }

  // Pieces round + first .. of which lane i has the weight of piece round + i. A weight of 0 is not
  // read: nothing may have been written there.
  PAGODA_DEVICE void add_pieces(Columns& o, const Work& work, int32_t round, int32_t first,
                                int32_t count, int row, float weight) const {
    float factors[kInFlight];
    Columns values[kInFlight];
    PAGODA_UNROLL
    for (int k = 0; k < kInFlight; ++k) {
      factors[k] = arch::shuffle(weight, (first + k) % 32);
      if (first + k >= count) factors[k] = 0;
      const float* const from = out_row(work.slot(round + first + k), row);
      PAGODA_UNROLL
      for (int i = 0; i < kQuads; ++i) {
        const int column = 128 * i + 4 * arch::lane_idx();
        values[k][i] = FloatQuad{};
        if (factors[k] != 0 && column < tile.depth_vo) {
          values[k][i] = arch::load(reinterpret_cast<const FloatQuad*>(from + column));
        }
      }
    }
    PAGODA_UNROLL
    for (int k = 0; k < kInFlight; ++k) {
      PAGODA_UNROLL
      for (int i = 0; i < kQuads; ++i) {
        PAGODA_UNROLL
        for (int e = 0; e < 4; ++e) o[i].value[e] += factors[k] * values[k][i].value[e];
      }
    }
  }

  PAGODA_DEVICE void finish(const Work& work, const Row& where, softmax::Sums sums, float max,
                            const Columns& o) {
    const RowResult result =
        end_row(params_, work.kv_head, where.q_head, where.is_valid, sums, max);
    const int lane = arch::lane_idx();
    if (lane == 0) store_statistics(params_, work, where.token, where.q_head, result);
    PAGODA_UNROLL
    for (int i = 0; i < kQuads; ++i) {
      store_quad<T>(params_, work, where, 128 * i + 4 * lane, o[i].value, result.end.o_factor);
    }
  }

  static PAGODA_DEVICE float max_of_warp(float value) {
    PAGODA_UNROLL
    for (int step = 16; step > 0; step /= 2) {
      const float other = arch::shuffle_xor(value, step);
      value = other > value ? other : value;
    }
    return value;
  }
  static PAGODA_DEVICE float sum_of_warp(float value) {
    PAGODA_UNROLL
    for (int step = 16; step > 0; step /= 2) value += arch::shuffle_xor(value, step);
    return value;
  }

  const AttentionParams& params_;
  Storage<Config>& storage_;
  int warpgroup_;
};

}  // namespace pagoda::sm90
