// The shared memory of an instance: every buffer and every barrier. README.md has the byte ranges,
// and who arrives at and who waits for each barrier.
#pragma once

#include <cstdint>

#include "arch/fault.hpp"
#include "arch/mbarrier.hpp"
#include "arch/memory.hpp"
#include "arch/tcgen05.hpp"
#include "kernels/common/sm100/factor_channel.hpp"
#include "kernels/common/sm100/pair_queue.hpp"
#include "kernels/common/split_rows.hpp"
#include "kernels/common/stream_k_start.hpp"
#include "kernels/common/work_ring.hpp"
#include "kernels/mha_sm100/config.hpp"
#include "kernels/mha_sm100/cta_group.hpp"
#include "pipeline/mbar_pipeline.hpp"
#include "pipeline/tma_producer_pipeline.hpp"

namespace pagoda::mha_sm100 {

using kernels::AttentionParams;
using kernels::Work;
using kernels::WorkReader;
using kernels::sm100::FactorPipeline;

// How the MMA warp releases a stage of K or V: tcgen05.commit arrives on `empty` when the MMAs that
// read the stage have completed. The lane that issued the MMAs commits.
template <class Group>
struct CommitRelease {
  static PAGODA_DEVICE void release(arch::MBarrier& empty, int32_t predicate, arch::Where where) {
    if (predicate != 0) Group::commit(empty, where);
  }
  // The load warp waits for that commit. In a CTA pair the leader commits for both CTAs, so the
  // wait acquires at cluster scope.
  static PAGODA_DEVICE void wait(arch::MBarrier& empty, uint32_t parity, arch::Where where) {
    Group::wait(empty, parity, where);
  }
};

template <class Config>
struct Operands {
  using T = typename Config::T;
  static constexpr TileConfig tile = Config::tile;
  using Group = CtaGroup<tile.ctas>;
  using Release = CommitRelease<Group>;
  static_assert(tile.fault() == nullptr, "the tile does not fit together: see TileConfig::fault");
  static_assert(tile.element_bytes == sizeof(T));
  struct KVConfig {
    static constexpr pipeline::KVTiling kv = tile.kv_tiling();
  };
  using KProducer = pipeline::TMAProducerPipeline<T, KVConfig, true, Release>;
  using VProducer = pipeline::TMAProducerPipeline<T, KVConfig, false, Release>;
  using KRing = typename KProducer::Pipeline;
  using VRing = typename VProducer::Pipeline;

  // One half of Q in this CTA; the epilogue stages O in the same memory.
  static constexpr arch::OperandTile q_tile =
      pipeline::tile_layout_k_major(sizeof(T), kRows, tile.depth, tile.swizzle);
  static constexpr int q_elements = kRows * tile.depth;
  static constexpr int slot_elements = tile.BN / tile.ctas * tile.depth;
  static constexpr int panel_columns = tile.swizzle_elements();
  // Warps that read work tiles: 8 softmax, 4 correction, 1 MMA, 1 load (gather: 2).
  static PAGODA_DEVICE uint32_t work_readers(bool is_gathered) { return is_gathered ? 15 : 14; }

  // Columns of V and O that the MMAs compute: head_dim_vo, rounded up to the epilogue's batches.
  static PAGODA_DEVICE int32_t output_columns(const AttentionParams& params) {
    return core::align_up(params.dim_vo, 32);
  }
  // The block of kRows rows of the work tile that this CTA has as half `half`. The blocks of one
  // MMA are consecutive: a pair's half 0 is blocks 0 and 1, its half 1 is blocks 2 and 3.
  static PAGODA_DEVICE int32_t block_of(int half) { return half * tile.ctas + Group::rank(); }
};

template <class Config>
struct Storage {
  using Ops = Operands<Config>;
  using T = typename Ops::T;
  static constexpr TileConfig tile = Config::tile;

  arch::SharedArray<T, kHalves * Ops::q_elements, 1024> q;         // Q0, Q1; then O0, O1
  arch::SharedArray<T, tile.slots * Ops::slot_elements, 1024> kv;  // K's ring, then V's; or one
  arch::SharedArray<kernels::FloatPair, kHalves * kRows> factors;
  // K's ring, then V's; or one.
  static constexpr int kRings = tile.has_shared_ring() ? 1 : 2;
  arch::MBarrier kv_rings[kRings][Ops::KRing::num_mbars];
  arch::MBarrier v_tail;  // TMA has loaded the last V tile, whose tail the load warp then zeroes
  // CTA pair, in the leader, one per stage of V: the peer CTA has zeroed its tail. One per stage,
  // because the peer may be one or more tails ahead, but never within the same stage.
  static constexpr int kTailStages = tile.ctas == 2 ? Ops::VRing::num_kv_stages : 1;
  arch::MBarrier v_tail_of_peer[kTailStages];
  arch::MBarrier q_full[kHalves], q_empty[kHalves];
  arch::MBarrier s_full[kHalves];
  arch::MBarrier p_full[kHalves][2];  // [0]: first part of P, and O rescaled; [1]: rest of P
  arch::MBarrier o_full[kHalves];
  arch::MBarrier factor_ring[kHalves][FactorPipeline::num_mbars];
  arch::SharedArray<uint32_t, kHalves> arrivals;  // of KV splits, for the correction warps
  arch::SharedArray<uint32_t, 1> tmem;            // address of the tensor memory allocation
  kernels::WorkRing work;
  kernels::StreamKStorage share;
  kernels::sm100::PairQueue queue;  // CTA pair
};

// Tensor memory by half. Columns: S0, S1 of BN each, then O0, O1 of `depth` each
// (TileConfig::tmem).
template <class Config>
struct Tmem {
  arch::TmemPtr base;

  [[nodiscard]] PAGODA_DEVICE arch::TmemPtr s(int half) const {
    return base.columns(half * Config::tile.BN);
  }
  // P overwrites S from its first column on, two or four elements to a column.
  [[nodiscard]] PAGODA_DEVICE arch::TmemPtr p(int half) const {
    return arch::mutable_place("P over the other half's S", s(half), s(1 - half));
  }
  [[nodiscard]] PAGODA_DEVICE arch::TmemPtr o(int half) const {
    return base.columns(kHalves * Config::tile.BN + half * Config::tile.depth);
  }
};

// Tokens of one half in one CTA. Rows past the last whole token are padding rows.
PAGODA_DEVICE int32_t tokens_of_half(const Work& work) { return kRows / work.num_heads; }
// Halves that have valid query rows, in any CTA of the group.
template <class Config>
PAGODA_DEVICE int32_t num_halves(const Work& work) {
  return work.valid_tokens > Config::tile.ctas * tokens_of_half(work) ? 2 : 1;
}
// KV split within a CTA: where only half 0 has valid rows, both softmax warpgroups work on them.
// Even KV tiles (counted from the last) use S0, O0 and sums of their own, odd ones S1, O1; the
// correction warps merge both at the end. CTA pairs, which serve many rows, never do it.
template <class Config>
PAGODA_DEVICE bool is_kv_split_in_cta(const Work& work) {
  if constexpr (Config::tile.ctas == 2) return false;
  return work.walk.num_tiles > 1 && num_halves<Config>(work) == 1;
}

}  // namespace pagoda::mha_sm100
