// The softmax role: a warpgroup of each CTA. S is read from tensor memory once, stays in registers, and P goes
// to shared memory, for tensor memory is full of O. With 128 rows a thread has a row; with 64 two lanes have
// half of a row's columns each, and exchange their maxima.
#pragma once

#include <cstdint>
#include <type_traits>

#include "arch/debug.hpp"
#include "arch/fence.hpp"
#include "arch/named_barrier.hpp"
#include "arch/tcgen05.hpp"
#include "arch/thread.hpp"
#include "arch/warp.hpp"
#include "kernels/common/sm100/scores.hpp"
#include "kernels/mha_sm100_d512/rows.hpp"

namespace pagoda::mha_sm100_d512 {

// Named; 0 is syncthreads. Of the two warps that share rows: two of them.
inline constexpr int kCorrectionBarrier = 1, kMaximaBarrier = 2;

template <class Config>
class Softmax {
 public:
  using Ops = Operands<Config>;
  using T = typename Config::T;
  static constexpr TileConfig tile = Config::tile;
  static constexpr int batch = tile.score_batch(), batches = tile.score_columns() / batch;
  static constexpr int words = batch * static_cast<int>(sizeof(T)) / 4;  // of P
  static constexpr bool is_general = tile.scores == ScoreClass::kGeneral;
  static constexpr bool shares_rows = tile.row_lanes() == 2;
  using Rule =
      std::conditional_t<sizeof(T) == 1, softmax::RescaleLazilyFp8, softmax::RescaleLazily>;
  using Row = kernels::Row<Rule>;

  PAGODA_DEVICE Softmax(const AttentionParams& params, Storage<Config>& storage, Tmem<Config> tmem,
                        int rank)
      : params_(params),
        storage_(storage),
        tmem_{tmem.base.lanes(arch::tmem_first_lane_of_warp(arch::warp_idx()))},
        rank_(rank),
        lane_(arch::thread_idx() % kWarpgroup),
        factors_(FactorPipeline::producer(storage.factor_ring)) {}

  PAGODA_DEVICE void run() {
    WorkReader reader(storage_.work);
    for (; reader.next(); reader.release()) {
      const Work work = reader.work();
      if (work.walk.num_tiles == 0) continue;
      Row row = make_row<Config, Rule>(params_, work, rank_, lane_ % tile.block_rows);
      attend(reader, work.walk, row);
      send(row.online.sums().pivot, row.online.sums().sum);
      if (params_.row_max != nullptr) send(row.online.max(), 0);
    }
  }

 private:
  PAGODA_DEVICE void attend(const WorkReader& reader, const mask::TileWalk& walk, Row& row) {
    const float scale = arch::mutable_factor("softmax scale x 1.02", score_scale(reader));
    const int32_t first_column = lane_ / tile.block_rows * tile.score_columns();
    is_first_ = true;
    PAGODA_NO_UNROLL
    for (int32_t i = walk.num_tiles - 1; i >= 0; --i) {
      const bool is_masked = i < walk.unmasked_begin || i >= walk.unmasked_end;
      make_probabilities(reader, walk.column(i) + first_column, is_masked, scale, row);
    }
  }

  // From a score of this role to log2 units.
  PAGODA_DEVICE float score_scale(const WorkReader& reader) const {
    if constexpr (is_general) return 1;
    return params_.score_map.scale_log2 * params_.kv_scales.k_scale(reader.work().kv_head);
  }

  // `column`: of this lane's first score. One body for tiles with and without a mask: two made ptxas spill.
  PAGODA_DEVICE void make_probabilities(const WorkReader& reader, int32_t column, bool is_masked,
                                        float scale, Row& row) {
    uint32_t s[batches][batch];
    const uint32_t turn = buffer_.index;  // parity of the tiles so far
    const arch::TmemPtr from = tmem_.s(turn);
    storage_.s_full[turn].wait(buffer_.phase);  // Q K' is complete
    buffer_.step();
    arch::tcgen05_fence_after_thread_sync();
    arch::trace_begin("softmax");

    // A batch is on its way while the one before is worked on.
    float largest = softmax::kMinusInfinity;
    load(s[0], from, 0);
    PAGODA_UNROLL
    for (int j = 0; j < batches; ++j) {
      arch::tmem_wait_load(s[j]);
      if (j + 1 < batches) load(s[j + 1], from, j + 1);
      if (is_masked) {
        kernels::sm100::change_scores<tile.scores, true>(params_, reader, row, column + j * batch,
                                                         s[j]);
      } else if constexpr (is_general) {
        kernels::sm100::change_scores<tile.scores, false>(params_, reader, row, column + j * batch,
                                                          s[j]);
      }
      largest = kernels::sm100::max_of(s[j], largest);
    }
    arch::tcgen05_fence_before_thread_sync();  // S is read

    const float tile_max = max_of_row(largest, turn) * scale;
    // Rows that hold no query have scores of whatever was in Q's place: they have no vote.
    const bool rescales = arch::any(!row.keys.empty() && row.online.wants_rescale(tile_max));
    const float offset_before = row.online.offset();
    const float factor = row.online.begin_tile(tile_max, rescales);
    if (!is_first_) send(factor, 0);
    is_first_ = false;

    // P waits in registers for its place, which the product before reads.
    const float offset =
        arch::mutable_value("pivot of the tile before", row.online.offset(), offset_before);
    float sums[4] = {0, 0, 0, 0};  // chains
    uint32_t p[batches][words];
    PAGODA_UNROLL
    for (int j = 0; j < batches; ++j) {
      kernels::sm100::soften_scores<T>(s[j], scale, offset, j > 0, sums, p[j]);
    }
    storage_.o_full.wait(turn ^ 1U);  // P V of the tile before is complete
    PAGODA_UNROLL
    for (int j = 0; j < batches; ++j) store(p[j], j);
    arch::fence_proxy_async_shared();  // P, before products read it
    arch::syncwarp();
    if (arch::elect_one() != 0) storage_.p_full.arrive_remote(kLeader);
    arch::trace_end();
    const float sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    row.online.add(
        arch::mutable_value("row sum not rescaled", sum, sum + kernels::lost_sum(row, factor)));
  }

  PAGODA_DEVICE void load(uint32_t (&s)[batch], arch::TmemPtr from, int j) const {
    arch::tmem_load<arch::TmemShape::k32x32b, batch>(s, from.columns(j * batch));
  }

  // The larger of the maxima of both lanes of a row. Two places take turns: who writes the third has met the
  // other lane after it read the first.
  PAGODA_DEVICE float max_of_row(float largest, uint32_t turn) const {
    if constexpr (!shares_rows) return largest;
    const auto maxima = storage_.maxima.at(static_cast<int32_t>(turn) * arch::kTmemLanes);
    arch::store(maxima + lane_, largest);
    arch::named_barrier_sync(kMaximaBarrier + arch::warp_idx() % 2, 64);
    const float other = arch::load(maxima + (lane_ ^ tile.block_rows));
    return other > largest ? other : largest;
  }

  // Batch j of P to its place: panels of rows, as products read them.
  PAGODA_DEVICE void store(const uint32_t (&p)[words], int j) const {
    constexpr int per_word = 16 / static_cast<int>(sizeof(T));  // elements of a store
    const int row = lane_ % tile.block_rows;
    const int panel = lane_ / tile.block_rows * (tile.score_columns() / Ops::chunk);
    // Of this lane's first panel: the place is aligned to the swizzle's repeat, so that an offset is swizzled as
    // an address would be.
    const auto base = storage_.p.data() + panel * tile.block_rows * Ops::chunk;
    PAGODA_UNROLL
    for (int i = 0; i < words; i += 4) {
      const int column = j * batch + i / 4 * per_word;
      const auto dense = static_cast<uint32_t>(
          ((column / Ops::chunk * tile.block_rows + row) * Ops::chunk + column % Ops::chunk) *
          sizeof(T));
      const uint32_t place = swizzle_address(dense, tile.swizzle);
      arch::store((base + static_cast<int32_t>(place / sizeof(T))).template as<arch::Words<4>>(),
                  arch::Words<4>{{p[i], p[i + 1], p[i + 2], p[i + 3]}});
    }
  }

  // A word or two of this lane to the correction.
  PAGODA_DEVICE void send(float low, float high) {
    factors_.producer_acquire();  // the correction has read the one before
    arch::store(storage_.factors.at(lane_), kernels::FloatPair{low, high});
    arch::syncwarp();
    factors_.producer_mbar().arrive_if(arch::elect_one());
    factors_.step();
  }

  const AttentionParams& params_;
  Storage<Config>& storage_;
  Tmem<Config> tmem_;  // this warp's lanes
  int rank_, lane_;
  FactorPipeline factors_;
  pipeline::PipelineState<2> buffer_;  // of S
  bool is_first_ = true;
};

}  // namespace pagoda::mha_sm100_d512
