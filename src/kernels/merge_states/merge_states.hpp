// merge_states on a GPU: merges partial attention results over disjoint sets of keys.
//
//   partial_out [num_parts, total_q, num_heads, dim]   fp32, fp16, bf16
//   partial_lse [num_parts, total_q, num_heads]        fp32, natural log or in units of lse_unit
//   out = sum_i exp(lse_i - m) out_i / sum_i exp(lse_i - m), m the largest lse; lse = m + log(sum)
//
// The sums run in the order of the parts, in double, as in backends/cpu/merge_states.cpp. The bits
// are the same unless exp() or a fused multiply-add of the GPU differs in the last bit of a double
// and that changes a rounding. A part whose LSE is -infinity is not loaded; where all are, out = 0
// and lse = -infinity. A NaN or +infinity among the LSEs makes the row NaN.
//
// A warp merges a row: its lanes compute the weights of as many parts at a time and share them by
// shuffles. O and the LSE may each be one of the parts: every lane stores the columns that it alone
// has loaded, and the LSE is stored when all lanes have read those of the row. One instance serves
// all types and widths. The kernel is bound by memory. Predicted traffic: rows * (parts * (dim *
// size + 4) + dim * size_out + 4) bytes; every pass loads the LSEs again, from L1. 8 parts of 2048
// rows of depth 128, fp32 to bf16: 17.3 MB, 4.1 us at the 4.28 TB/s that a copy reaches on an H200.
// An element costs a conversion to double (16 a clock and SM: 3.7 T/s, against 1.1 T/s that memory
// delivers in fp32, 2.1 in 16 bits) and a multiply-add in double; these would bound a GPU without
// fast doubles. Few rows with many parts are bound by latency: a lane has 8 loads in flight.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "arch/memory.hpp"
#include "arch/thread.hpp"
#include "arch/warp.hpp"
#include "kernels/common/elements.hpp"
#include "kernels/merge_states/merge_states_params.hpp"

namespace pagoda::kernels {

// `warp`: lanes of a warp, 32 or (AMD) 64.
template <int warp>
struct MergeStatesRows {
  using Params = MergeStatesParams;
  struct Storage {};
  static constexpr int kThreads = warp * kMergeStatesRowsPerBlock;
  static constexpr int kWarpSize = warp, kClusterSize = 1, kMinArch = 80;

  static PAGODA_DEVICE void run(const Params& params) {
    const int64_t first = arch::block_idx().x * int64_t{kMergeStatesRowsPerBlock};
    const int64_t step = arch::grid_dim().x * int64_t{kMergeStatesRowsPerBlock};
    for (int64_t row = first + arch::warp_idx(); row < params.num_rows; row += step) {
      // Unsigned: a division of signed numbers takes a hundred vector registers more on gfx942.
      const auto token = static_cast<int64_t>(static_cast<uint64_t>(row) /
                                              static_cast<uint32_t>(params.num_heads));
      if (params.row_mask != nullptr && arch::load_read_only(params.row_mask + token) == 0)
        continue;
      merge_row(params, token, row - token * params.num_heads);
    }
  }

 private:
  static constexpr int kInFlight = 8;  // loads of a lane
  static constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

  // The parts of one token and head.
  struct Parts {
    arch::GlobalPtr<const uint8_t> out;  // part 0
    arch::GlobalPtr<const uint8_t> lse;
    int64_t out_stride, lse_stride;
    int64_t count;
    double lse_unit;
  };

  using Lanes = std::conditional_t<warp == 64, uint64_t, uint32_t>;
  // The weight of one of `warp` parts, a part a lane.
  struct LaneWeight {
    double weight;  // 0 where the part does not exist or its LSE is -infinity
    Lanes live;     // bit i: the weight of lane i may not be 0, its part is loaded
  };

  static PAGODA_DEVICE void merge_row(const Params& params, int64_t token, int64_t head) {
    const Parts parts{.out = params.partial_out.as<const uint8_t>() +
                             token * params.out_token_stride + head * params.out_head_stride,
                      .lse = params.partial_lse.as<const uint8_t>() +
                             token * params.lse_token_stride + head * params.lse_head_stride,
                      .out_stride = params.out_part_stride,
                      .lse_stride = params.lse_part_stride,
                      .count = params.num_parts,
                      .lse_unit = params.lse_unit};
    const float largest = largest_lse(parts);
    const double sum = sum_of_weights(parts, largest);
    const arch::GlobalPtr<uint8_t> to = params.merged_out.as<uint8_t>() +
                                        token * params.merged_out_token_stride +
                                        head * params.merged_out_head_stride;
    if (params.chunk == 4) {
      merge_columns<4>(params, parts, largest, sum, to);
    } else {
      merge_columns<1>(params, parts, largest, sum, to);
    }
    if (params.merged_lse == nullptr) return;
    arch::syncwarp();  // all lanes have read the LSEs, of which the merged one may replace one
    if (arch::lane_idx() == 0) {
      const arch::GlobalPtr<uint8_t> lse = params.merged_lse.as<uint8_t>() +
                                           token * params.merged_lse_token_stride +
                                           head * params.merged_lse_head_stride;
      arch::store(lse.as<float>(),
                  static_cast<float>(static_cast<double>(largest) +
                                     ::log(sum) / params.lse_unit));  // log(0): -inf
    }
  }

  // --- weights ---

  static PAGODA_DEVICE float lse_of(const Parts& parts, int64_t part) {
    return arch::load((parts.lse + part * parts.lse_stride).template as<const float>());
  }

  static PAGODA_DEVICE float largest_lse(const Parts& parts) {
    float largest = kMinusInfinity;
    for (int64_t part = arch::lane_idx(); part < parts.count; part += warp) {
      const float lse = lse_of(parts, part);
      largest = lse > largest ? lse : largest;  // skips NaN
    }
    for (int mask = warp / 2; mask > 0; mask /= 2) {
      const float other = arch::shuffle_xor(largest, mask);
      largest = other > largest ? other : largest;
    }
    return largest;
  }

  static PAGODA_DEVICE LaneWeight lane_weight(const Parts& parts, int64_t first_part,
                                              float largest) {
    const int64_t part = first_part + arch::lane_idx();
    const float lse = part < parts.count ? lse_of(parts, part) : kMinusInfinity;
    const bool is_live = lse != kMinusInfinity;
    const double distance = static_cast<double>(lse) - static_cast<double>(largest);
    return {is_live ? ::exp(distance * parts.lse_unit) : 0.0,
            static_cast<Lanes>(arch::ballot(is_live))};
  }

  // The sum in the order of the parts; the same in every lane.
  static PAGODA_DEVICE double sum_of_weights(const Parts& parts, float largest) {
    double sum = 0;
    for (int64_t first = 0; first < parts.count; first += warp) {
      const LaneWeight mine = lane_weight(parts, first, largest);
      const int count = static_cast<int>(parts.count - first < warp ? parts.count - first : warp);
      for (int lane = 0; lane < count; ++lane) sum += shuffle(mine.weight, lane);
    }
    return sum;
  }

  static PAGODA_DEVICE double shuffle(double value, int lane) {
    const auto bits = __builtin_bit_cast(uint64_t, value);
    const uint64_t low = arch::shuffle(static_cast<uint32_t>(bits), lane);
    const uint64_t high = arch::shuffle(static_cast<uint32_t>(bits >> 32U), lane);
    return __builtin_bit_cast(double, high << 32U | low);
  }

  // --- output ---

  template <int N>
  static PAGODA_DEVICE void merge_columns(const Params& params, const Parts& parts, float largest,
                                          double sum, arch::GlobalPtr<uint8_t> to) {
    for (int32_t begin = 0; begin < params.dim; begin += warp * N) {
      const int32_t column = begin + arch::lane_idx() * N;
      const bool is_mine = column < params.dim;  // the other lanes compute weights only
      double sums[N] = {};
      switch (params.partial_dtype) {
        case DType::kF32: add_parts<DType::kF32>(parts, largest, sum, column, is_mine, sums); break;
        case DType::kF16: add_parts<DType::kF16>(parts, largest, sum, column, is_mine, sums); break;
        default: add_parts<DType::kBF16>(parts, largest, sum, column, is_mine, sums); break;
      }
      if (is_mine) store_chunk(params.merged_dtype, to, column, sums);
    }
  }

  template <DType kDType, int N>
  static PAGODA_DEVICE void add_parts(const Parts& parts, float largest, double sum, int32_t column,
                                      bool is_mine, double (&sums)[N]) {
    constexpr int kBytes = N * kSizeBytes<kDType>;
    const arch::GlobalPtr<const uint8_t> columns =
        parts.out + static_cast<int64_t>(column) * kSizeBytes<kDType>;
    for (int64_t first = 0; first < parts.count; first += warp) {
      const LaneWeight mine = lane_weight(parts, first, largest);
      const double weight = mine.weight / sum;
      const int count = static_cast<int>(parts.count - first < warp ? parts.count - first : warp);
      for (int group = 0; group < count; group += kInFlight) {
        RawElements<kBytes> raw[kInFlight] = {};
        PAGODA_UNROLL
        for (int i = 0; i < kInFlight; ++i) {
          if (!is_mine || (mine.live >> (group + i) & 1U) == 0) continue;
          raw[i] =
              load_raw<kBytes, Source::kWritten>(columns + (first + group + i) * parts.out_stride);
        }
        PAGODA_UNROLL
        for (int i = 0; i < kInFlight; ++i) {
          if ((mine.live >> (group + i) & 1U) == 0) continue;  // the same in all lanes
          const double factor = shuffle(weight, group + i);
          float values[N];
          to_floats<kDType>(raw[i], values);
          PAGODA_UNROLL
          for (int c = 0; c < N; ++c) sums[c] += factor * static_cast<double>(values[c]);
        }
      }
    }
  }

  template <int N>
  static PAGODA_DEVICE void store_chunk(DType dtype, arch::GlobalPtr<uint8_t> to, int32_t column,
                                        const double (&sums)[N]) {
    float values[N];
    PAGODA_UNROLL
    for (int c = 0; c < N; ++c) values[c] = static_cast<float>(sums[c]);
    const int64_t at = column;
    switch (dtype) {
      case DType::kF32: store_floats<DType::kF32>(to + 4 * at, values); return;
      case DType::kF16: store_floats<DType::kF16>(to + 2 * at, values); return;
      default: store_floats<DType::kBF16>(to + 2 * at, values); return;
    }
  }
};

using MergeStatesKernel = MergeStatesRows<32>;

}  // namespace pagoda::kernels
