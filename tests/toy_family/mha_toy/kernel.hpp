// The kernel of the toy family: a warp has 32 query rows of one head, a thread each row.
#pragma once

#include "arch/memory.hpp"
#include "arch/thread.hpp"
#include "core/element.hpp"
#include "kernels/common/attention_params.hpp"
#include "mask/interval_mask.hpp"
#include "softmax/online.hpp"

namespace pagoda::mha_toy {

inline constexpr int kRows = 32;  // of a CTA

template <int depth>
struct Kernel {
  using Params = kernels::AttentionParams;
  struct Storage {};
  static constexpr int kThreads = kRows, kClusterSize = 1, kMinArch = 90;

  static PAGODA_DEVICE void run(const Params& params) {
    const schedule::TileCoord tile = params.grid.at(arch::block_idx().x);
    if (!tile.exists() || arch::thread_idx() >= tile.num_rows) return;
    const int32_t b = tile.sequence, row = tile.first_row + arch::thread_idx();
    const int32_t kv_head = tile.head / params.group;
    const kernels::Sequences& sequences = params.sequences;
    const int64_t memory_row = sequences.first_row(b) + row;

    float o[depth] = {};
    softmax::RowResult end;
    float max = softmax::kMinusInfinity;
    if (row < sequences.num_valid_rows(b)) {
      const auto online = mainloop(params, b, row, memory_row, tile.head, kv_head, o);
      const float sink = params.sinks == nullptr ? softmax::kMinusInfinity
                                                 : arch::load_read_only(params.sinks + tile.head);
      max = softmax::finish_max(online.max(), sink);
      end = softmax::finish(online.sums(), sink, params.v_scales.of(b, kv_head));
    }
    const auto out =
        params.out_data.template as<uint16_t>() + params.out_rows.offset(b, memory_row, tile.head);
    for (int d = 0; d < params.dim_vo; ++d) {
      arch::store(out + d, core::float_to_bf16(end.o_factor == 0 ? 0 : o[d] * end.o_factor));
    }
    if (params.lse != nullptr) {
      arch::store(params.lse + params.lse_rows.offset(b, memory_row, tile.head), end.lse());
    }
    if (params.row_max != nullptr) {
      arch::store(params.row_max + params.row_max_rows.offset(b, memory_row, tile.head), max);
    }
  }

 private:
  static PAGODA_DEVICE softmax::OnlineRow<softmax::RescaleLazily> mainloop(
      const Params& params, int32_t b, int32_t row, int64_t memory_row, int32_t q_head,
      int32_t kv_head, float (&o)[depth]) {
    const auto num_keys = static_cast<int32_t>(params.sequences.keys.num_keys(b));
    const mask::RowTile rows{b, num_keys, params.sequences.q_position(b, num_keys), row, 1};
    const mask::Interval keys = params.mask.interval.visible(rows, row);
    const operand::SequenceRows places = params.sequences.keys.sequence(b);
    const auto q =
        params.q_data.template as<const uint16_t>() + params.q_rows.offset(b, memory_row, q_head);
    const float scale = params.score_map.scale_log2 * params.k_scales.of(b, kv_head);
    softmax::OnlineRow<softmax::RescaleLazily> online;
    for (int32_t key = keys.lo; key < keys.hi; ++key) {
      const operand::KeyCoordinates place = places.at(static_cast<uint32_t>(key));
      const auto k = params.k_data.template as<const uint16_t>() +
                     params.k_rows.offset(place.outer, place.row, kv_head);
      const auto v = params.v_data.template as<const uint16_t>() +
                     params.v_rows.offset(place.outer, place.row, kv_head);
      float score = 0;
      for (int d = 0; d < params.dim_qk; ++d) {
        score += core::bf16_to_float(arch::load(q + d)) * core::bf16_to_float(arch::load(k + d));
      }
      score *= scale;
      const float factor = online.begin_tile(score, online.wants_rescale(score));
      const float p = ::exp2f(score + online.offset());
      online.add(p);
      for (int d = 0; d < params.dim_vo; ++d) {
        o[d] = o[d] * factor + p * core::bf16_to_float(arch::load(v + d));
      }
    }
    return online;
  }
};

}  // namespace pagoda::mha_toy
