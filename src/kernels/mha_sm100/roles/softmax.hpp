// The softmax role: one warpgroup per half, one row per thread, so that the maximum and the sum of
// a row need no shuffles. It loads S from tensor memory in batches of columns and stores P over it.
//
// Plain scores of up to 128 keys stay in registers between the maximum and exp2. Other scores are
// loaded twice; those that a mask or a score modification changes are stored back in between.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "arch/debug.hpp"
#include "arch/fault.hpp"
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
      const bool is_split = is_kv_split_in_cta<Config>(work);
      if (work.walk.num_tiles == 0 || (half_ >= num_halves<Config>(work) && !is_split)) continue;
      Row row = make_row<Rule>(params_, work, Ops::block_of(is_split ? 0 : half_),
                               arch::thread_idx() % kWarpgroup);
      run_key_tiles(reader, work.walk, is_split, row);
      store_factors(row.online.sums().pivot, row.online.sums().sum);
      if (params_.row_max != nullptr) store_factors(row.online.max(), 0);
    }
  }

 private:
  // The mainloop: all KV tiles, or every other one where the CTA splits them.
  PAGODA_DEVICE void run_key_tiles(const WorkReader& reader, const mask::KVTileRange& walk,
                                   bool is_split, Row& row) {
    const float scale = arch::mutable_factor(
        "softmax scale x 1.02",
        kernels::sm100::score_scale<tile.scores, tile.element_bytes>(params_, reader, row));
    const int32_t step = is_split ? 2 : 1;
    int32_t i = walk.num_tiles - 1 - (is_split ? half_ : 0);
    is_first_ = true;
    for (; i >= walk.unmasked_end; i -= step) {
      make_probabilities<true>(reader, kernels::first_key_of<Config>(walk, i), scale, row);
    }
    for (; i >= walk.unmasked_begin; i -= step) {
      make_probabilities<false>(reader, kernels::first_key_of<Config>(walk, i), scale, row);
    }
    for (; i >= 0; i -= step)
      make_probabilities<true>(reader, kernels::first_key_of<Config>(walk, i), scale, row);
  }

  // One KV tile, S to P.
  template <bool is_masked>
  // `of_products`: from products to log2 units.
  PAGODA_DEVICE void make_probabilities(const WorkReader& reader, int32_t column, float of_products,
                                        Row& row) {
    const float scale = kernels::score_factor<Config>(of_products);
    constexpr bool is_changed = is_masked || is_general || kernels::kHasFunctorScore<Config>;
    constexpr int buffers = holds_scores ? batches : 2;
    uint32_t s[buffers][batch];
    // Waits until the MMAs of Q K' have written S; the MMA warp's commit arrives.
    storage_.s_full[half_].wait(s_phase_);
    s_phase_ ^= 1U;
    arch::tcgen05_fence_after_thread_sync();  // orders the wait before the loads of S
    arch::trace_begin("softmax");

    // The load of a batch overlaps the maximum of the previous one, except where batches are stored
    // back: that would need four blocks of consecutive registers.
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
        kernels::sm100::apply_score_mods_and_mask<Config, tile.element_bytes, is_masked>(
            params_, reader, row, column + j * batch, of_products, now);
      }
      largest = kernels::sm100::max_of(now, largest);
      if constexpr (is_written_back) {
        arch::tmem_store<arch::TmemShape::k32x32b, batch>(s_.columns(j * batch), now);
        if (j + 1 < batches) load(next, j + 1);
      }
    }
    if constexpr (is_written_back) arch::tmem_wait_store();

    const auto [factor, offset] = kernels::sm100::begin_tile(row, largest * scale);
    if (!is_first_) store_factors(factor, 0);
    is_first_ = false;

    float sums[4] = {0, 0, 0, 0};
    if constexpr (!holds_scores) load(s[0], 0);
    PAGODA_UNROLL
    for (int j = 0; j < batches; ++j) {
      if constexpr (!holds_scores) {
        arch::tmem_wait_load(s[j % buffers]);
        if (j + 1 < batches) load(s[(j + 1) % buffers], j + 1);
      }
      store_p(s[j % buffers], scale, offset, j, sums);
      if ((j + 1) * batch == tile.first_part()) arrive_p_full(0);
    }
    arrive_p_full(1);
    arch::trace_end();
    kernels::sm100::add_sums(row, sums, factor);
  }

  PAGODA_DEVICE void load(uint32_t (&s)[batch], int j) const {
    arch::tmem_load<arch::TmemShape::k32x32b, batch>(s, s_.columns(j * batch));
  }

  // Stores P of batch j over S. The special function unit alone computes the first batch.
  PAGODA_DEVICE void store_p(const uint32_t (&s)[batch], float scale, float offset, int j,
                             float (&sums)[4]) const {
    constexpr int words = batch * static_cast<int>(sizeof(T)) / 4;
    uint32_t p[words];
    kernels::sm100::exp2_scores<T>(s, scale, offset, j > 0, sums, p);
    arch::tmem_store<arch::TmemShape::k32x32b, words>(p_.columns(j * words), p);
  }

  // Signals the MMA warp that this warp has stored part `part` of P; after part 1 it has also read
  // all of S. Tensor memory loads, stores and waits are warp-wide, so one lane arrives.
  PAGODA_DEVICE void arrive_p_full(int part) {
    arch::tmem_wait_store();
    arch::tcgen05_fence_before_thread_sync();  // orders the stores of P before the MMAs' reads
    Ops::Group::arrive_tmem(storage_.p_full[half_][part], arch::elect_one());
  }

  PAGODA_DEVICE void store_factors(float low, float high) {
    kernels::sm100::store_factors(
        factors_, storage_.factors.at(half_ * kRows + arch::thread_idx() % kWarpgroup),
        {low, high});
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
