// The softmax role: one warpgroup of each CTA. It loads S from tensor memory once, keeps it in
// registers, and stores P to shared memory, because O and both S fill tensor memory. With blocks of
// 128 rows a thread has one row. With 64, two lanes have half of a row's columns each, and exchange
// their maxima.
#pragma once

#include <cstdint>
#include <type_traits>

#include "arch/debug.hpp"
#include "arch/fault.hpp"
#include "arch/fence.hpp"
#include "arch/named_barrier.hpp"
#include "arch/tcgen05.hpp"
#include "arch/thread.hpp"
#include "arch/warp.hpp"
#include "kernels/common/sm100/scores.hpp"
#include "kernels/mha_sm100_d512/rows.hpp"

namespace pagoda::mha_sm100_d512 {

// Named barriers; 0 is syncthreads.
inline constexpr int kCorrectionBarrier = 1;  // the correction warps
inline constexpr int kMaximaBarrier = 2;      // and 3: softmax warps 0 and 2, 1 and 3 (shared rows)

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
      run_key_tiles(reader, work.walk, row);
      store_factors(row.online.sums().pivot, row.online.sums().sum);
      if (params_.row_max != nullptr) store_factors(row.online.max(), 0);
    }
  }

 private:
  // The mainloop.
  PAGODA_DEVICE void run_key_tiles(const WorkReader& reader, const mask::KVTileRange& walk,
                                   Row& row) {
    const float scale = arch::mutable_factor(
        "softmax scale x 1.02",
        kernels::sm100::score_scale<tile.scores, tile.element_bytes>(params_, reader, row));
    const int32_t first_column = lane_ / tile.block_rows * tile.score_columns();
    is_first_ = true;
    PAGODA_NO_UNROLL
    for (int32_t i = walk.num_tiles - 1; i >= 0; --i) {
      const bool is_masked = i < walk.unmasked_begin || i >= walk.unmasked_end;
      make_probabilities(reader, kernels::first_key_of<Config>(walk, i) + first_column, is_masked,
                         scale, row);
    }
  }

  // One KV tile, S to P. `column`: the key of this lane's first score. Masked and unmasked tiles
  // share this body: with two, ptxas spilled. `of_products`: from products to log2 units.
  PAGODA_DEVICE void make_probabilities(const WorkReader& reader, int32_t column, bool is_masked,
                                        float of_products, Row& row) {
    const float scale = kernels::score_factor<Config>(of_products);
    constexpr bool is_changed = is_general || kernels::kHasFunctorScore<Config>;
    uint32_t s[batches][batch];
    const uint32_t buffer = buffer_.index;
    const arch::TmemPtr from = tmem_.s(buffer);
    // Waits until the MMAs of Q K' have written S; the leader's commit arrives.
    storage_.s_full[buffer].wait(buffer_.phase);
    buffer_.step();
    arch::tcgen05_fence_after_thread_sync();  // orders the wait before the loads of S
    arch::trace_begin("softmax");

    // The load of a batch overlaps the maximum of the previous one.
    float largest = softmax::kMinusInfinity;
    load(s[0], from, 0);
    PAGODA_UNROLL
    for (int j = 0; j < batches; ++j) {
      arch::tmem_wait_load(s[j]);
      if (j + 1 < batches) load(s[j + 1], from, j + 1);
      if (is_masked) {
        kernels::sm100::apply_score_mods_and_mask<Config, tile.element_bytes, true>(
            params_, reader, row, column + j * batch, of_products, s[j]);
      } else if constexpr (is_changed) {
        kernels::sm100::apply_score_mods_and_mask<Config, tile.element_bytes, false>(
            params_, reader, row, column + j * batch, of_products, s[j]);
      }
      largest = kernels::sm100::max_of(s[j], largest);
    }
    arch::tcgen05_fence_before_thread_sync();  // orders the loads of S before the MMAs' next S

    const auto [factor, offset] =
        kernels::sm100::begin_tile(row, max_of_row(largest, buffer) * scale);
    if (!is_first_) store_factors(factor, 0);
    is_first_ = false;

    // P stays in registers until the previous P V has read the one P buffer in shared memory.
    float sums[4] = {0, 0, 0, 0};
    uint32_t p[batches][words];
    PAGODA_UNROLL
    for (int j = 0; j < batches; ++j) {
      kernels::sm100::exp2_scores<T>(s[j], scale, offset, j > 0, sums, p[j]);
    }
    // Waits until the MMAs of P V of the previous tile have completed; the leader's commit arrives.
    storage_.o_full.wait(buffer ^ 1U);
    PAGODA_UNROLL
    for (int j = 0; j < batches; ++j) store_p(p[j], j);
    // Orders this lane's P before the MMAs' reads through the async proxy; syncwarp then orders all
    // lanes' before the arrival of one lane.
    arch::fence_proxy_async_shared();
    arch::syncwarp();
    if (arch::elect_one() != 0) storage_.p_full.arrive_remote(kLeader);
    arch::trace_end();
    kernels::sm100::add_sums(row, sums, factor);
  }

  PAGODA_DEVICE void load(uint32_t (&s)[batch], arch::TmemPtr from, int j) const {
    arch::tmem_load<arch::TmemShape::k32x32b, batch>(s, from.columns(j * batch));
  }

  // The maximum over both lanes of a row. Double-buffered: a lane that overwrites a buffer has
  // passed the barrier of the tile between, which the other lane reached after its read.
  PAGODA_DEVICE float max_of_row(float largest, uint32_t buffer) const {
    if constexpr (!shares_rows) return largest;
    const auto maxima = storage_.maxima.at(static_cast<int32_t>(buffer) * arch::kTmemLanes);
    arch::store(maxima + lane_, largest);
    // Waits until the warp with the other lanes of these rows has stored its maxima.
    arch::named_barrier_sync(kMaximaBarrier + arch::warp_idx() % 2, 64);
    const float other = arch::load(maxima + (lane_ ^ tile.block_rows));
    return other > largest ? other : largest;
  }

  // Stores batch j of P to shared memory, in the panels that the MMAs read.
  PAGODA_DEVICE void store_p(const uint32_t (&p)[words], int j) const {
    constexpr int per_word = 16 / static_cast<int>(sizeof(T));  // elements of a store
    const int row = lane_ % tile.block_rows;
    constexpr int width = Ops::panel_columns;
    const int panel = lane_ / tile.block_rows * (tile.score_columns() / width);
    // The start of this lane's first panel. It is aligned to the period of the swizzle, so
    // swizzling the offset gives the same as swizzling the address.
    const auto base = storage_.p.data() + panel * tile.block_rows * width;
    PAGODA_UNROLL
    for (int i = 0; i < words; i += 4) {
      const int column = j * batch + i / 4 * per_word;
      const auto dense = static_cast<uint32_t>(
          ((column / width * tile.block_rows + row) * width + column % width) * sizeof(T));
      const uint32_t offset = swizzle_address(dense, tile.swizzle);
      arch::store((base + static_cast<int32_t>(offset / sizeof(T))).template as<arch::Words<4>>(),
                  arch::Words<4>{{p[i], p[i + 1], p[i + 2], p[i + 3]}});
    }
  }

  PAGODA_DEVICE void store_factors(float low, float high) {
    kernels::sm100::store_factors(factors_, storage_.factors.at(lane_), {low, high});
  }

  const AttentionParams& params_;
  Storage<Config>& storage_;
  Tmem<Config> tmem_;  // this warp's lanes
  int rank_, lane_;
  FactorPipeline factors_;
  pipeline::PipelineState<2> buffer_;  // which S is next
  bool is_first_ = true;
};

}  // namespace pagoda::mha_sm100_d512
