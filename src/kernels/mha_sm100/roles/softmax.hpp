// The softmax role: a warpgroup a half of the rows, a thread a row, so that maxima and sums need no
// shuffles. S is read from tensor memory in batches of columns and P takes its place.
//
// Plain scores of up to 128 keys stay in registers between the maximum and the exponentials. Others
// are read twice, and written back in between where a mask or a bias has changed them.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "arch/debug.hpp"
#include "arch/tcgen05.hpp"
#include "arch/thread.hpp"
#include "arch/warp.hpp"
#include "kernels/common/sm100/scores.hpp"
#include "kernels/mha_sm100/rows.hpp"

namespace pagoda::mha_sm100 {

template <class Config>
class Softmax {
 public:
  using Ops = Operands<Config>;
  using T = typename Config::T;
  static constexpr TileConfig tile = Config::tile;
  static constexpr int BN = tile.BN, batch = tile.batch(), batches = BN / batch;
  static constexpr bool is_general = tile.scores == ScoreClass::kGeneral;
  static constexpr bool holds_scores = tile.holds_scores();
  using Rule =
      std::conditional_t<sizeof(T) == 1, softmax::RescaleLazilyFp8, softmax::RescaleLazily>;
  using Row = kernels::Row<Rule>;

  PAGODA_DEVICE Softmax(const AttentionParams& params, Storage<Config>& storage, Tmem<Config> tmem,
                        int half)
      : params_(params),
        storage_(storage),
        half_(half),
        s_(tmem.s(half).lanes(arch::tmem_first_lane_of_warp(arch::warp_idx()))),
        p_(tmem.p(half).lanes(arch::tmem_first_lane_of_warp(arch::warp_idx()))),
        factors_(FactorPipeline::producer(storage.factor_ring[half])) {}

  PAGODA_DEVICE void run() {
    WorkReader reader(storage_.work);
    for (; reader.next(); reader.release()) {
      const Work work = reader.work();
      const bool is_stream = has_two_streams<Config>(work);
      if (work.walk.num_tiles == 0 || (half_ >= num_halves<Config>(work) && !is_stream)) continue;
      Row row = make_row<Rule>(params_, work, Ops::block_of(is_stream ? 0 : half_),
                               arch::thread_idx() % kWarpgroup);
      attend(reader, work.walk, is_stream, row);
      send(row.online.sums().pivot, row.online.sums().sum);
      if (params_.row_max != nullptr) send(row.online.max(), 0);
    }
  }

 private:
  // All key tiles, or every other one.
  PAGODA_DEVICE void attend(const WorkReader& reader, const mask::TileWalk& walk, bool is_stream,
                            Row& row) {
    const float scale = arch::mutable_factor("softmax scale x 1.02", score_scale(reader));
    const int32_t step = is_stream ? 2 : 1;
    int32_t i = walk.num_tiles - 1 - (is_stream ? half_ : 0);
    is_first_ = true;
    for (; i >= walk.unmasked_end; i -= step) {
      make_probabilities<true>(reader, walk.column(i), scale, row);
    }
    for (; i >= walk.unmasked_begin; i -= step) {
      make_probabilities<false>(reader, walk.column(i), scale, row);
    }
    for (; i >= 0; i -= step) make_probabilities<true>(reader, walk.column(i), scale, row);
  }

  // From a score of this role to log2 units.
  PAGODA_DEVICE float score_scale(const WorkReader& reader) const {
    if constexpr (is_general) return 1;
    return params_.score_map.scale_log2 * params_.kv_scales.k_scale(reader.work().kv_head);
  }

  template <bool is_masked>
  PAGODA_DEVICE void make_probabilities(const WorkReader& reader, int32_t column, float scale,
                                        Row& row) {
    constexpr bool is_changed = is_masked || is_general;
    constexpr int buffers = holds_scores ? batches : 2;
    uint32_t s[buffers][batch];
    storage_.s_full[half_].wait(s_phase_);  // Q K' is complete
    s_phase_ ^= 1U;
    arch::tcgen05_fence_after_thread_sync();
    arch::trace_begin("softmax");

    // A batch is on its way while the one before is worked on; not so where it is written back: that
    // would take four blocks of registers.
    constexpr bool is_written_back = is_changed && !holds_scores;
    float largest = softmax::kMinusInfinity;
    load(s[0], 0);
    PAGODA_UNROLL
    for (int j = 0; j < batches; ++j) {
      uint32_t(&now)[batch] = s[j % buffers];
      uint32_t(&next)[batch] = s[(j + 1) % buffers];
      arch::tmem_wait_load(now);
      if (!is_written_back && j + 1 < batches) load(next, j + 1);
      if constexpr (is_changed) {
        kernels::sm100::change_scores<tile.scores, is_masked>(params_, reader, row,
                                                              column + j * batch, now);
      }
      largest = kernels::sm100::max_of(now, largest);
      if constexpr (is_written_back) {
        arch::tmem_store<arch::TmemShape::k32x32b, batch>(s_.columns(j * batch), now);
        if (j + 1 < batches) load(next, j + 1);
      }
    }
    if constexpr (is_written_back) arch::tmem_wait_store();

    const float tile_max = largest * scale;
    // Rows that hold no query have scores of whatever was in Q's place: they have no vote.
    const bool rescales = arch::any(!row.keys.empty() && row.online.wants_rescale(tile_max));
    const float offset_before = row.online.offset();
    const float factor = row.online.begin_tile(tile_max, rescales);
    if (!is_first_) send(factor, 0);
    is_first_ = false;

    const float offset =
        arch::mutable_value("pivot of the tile before", row.online.offset(), offset_before);
    float sums[4] = {0, 0, 0, 0};  // chains
    if constexpr (!holds_scores) load(s[0], 0);
    PAGODA_UNROLL
    for (int j = 0; j < batches; ++j) {
      if constexpr (!holds_scores) {
        arch::tmem_wait_load(s[j % buffers]);
        if (j + 1 < batches) load(s[(j + 1) % buffers], j + 1);
      }
      soften(s[j % buffers], scale, offset, j, sums);
      if ((j + 1) * batch == tile.first_part()) tell_p(0);
    }
    tell_p(1);
    arch::trace_end();
    const float sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    row.online.add(
        arch::mutable_value("row sum not rescaled", sum, sum + kernels::lost_sum(row, factor)));
  }

  PAGODA_DEVICE void load(uint32_t (&s)[batch], int j) const {
    arch::tmem_load<arch::TmemShape::k32x32b, batch>(s, s_.columns(j * batch));
  }

  // Batch j of scores becomes P where S was; the first is the special-function unit's alone.
  PAGODA_DEVICE void soften(const uint32_t (&s)[batch], float scale, float offset, int j,
                            float (&sums)[4]) const {
    constexpr int words = batch * static_cast<int>(sizeof(T)) / 4;
    uint32_t p[words];
    kernels::sm100::soften_scores<T>(s, scale, offset, j > 0, sums, p);
    arch::tmem_store<arch::TmemShape::k32x32b, words>(p_.columns(j * words), p);
  }

  // A part of P stands in tensor memory; with the last part S has been read. Loads, stores and waits
  // are the warp's: one lane tells of all.
  PAGODA_DEVICE void tell_p(int part) {
    arch::tmem_wait_store();
    arch::tcgen05_fence_before_thread_sync();
    Ops::Group::tell_tensor(storage_.p_full[half_][part], arch::elect_one());
  }

  // A word or two of this row to the correction.
  PAGODA_DEVICE void send(float low, float high) {
    factors_.producer_acquire();  // the correction has read the one before
    arch::store(storage_.factors.at(half_ * kRows + arch::thread_idx() % kWarpgroup),
                kernels::FloatPair{low, high});
    arch::syncwarp();
    factors_.producer_mbar().arrive_if(arch::elect_one());
    factors_.step();
  }

  const AttentionParams& params_;
  Storage<Config>& storage_;
  int half_;
  arch::TmemPtr s_, p_;
  FactorPipeline factors_;
  uint32_t s_phase_ = 0;
  bool is_first_ = true;
};

}  // namespace pagoda::mha_sm100
