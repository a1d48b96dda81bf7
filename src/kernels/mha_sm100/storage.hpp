// The shared memory of an instance: every buffer and every barrier, on one page. Who signals and who
// waits: README.md.
#pragma once

#include <cstdint>

#include "arch/fault.hpp"
#include "arch/mbarrier.hpp"
#include "arch/memory.hpp"
#include "arch/tcgen05.hpp"
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

// A stage is released when the products that read it are complete: by the lane that issued them.
template <class Group>
struct CommitRelease {
  static PAGODA_DEVICE void release(arch::MBarrier& empty, int32_t predicate, arch::Where where) {
    if (predicate != 0) Group::commit(empty, where);
  }
  // In a pair the commit comes from the leader: an acquire of scope .cta would not see what came before it.
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
  struct KConfig {
    static constexpr pipeline::KVTiling kv = tile.k_tiling();
  };
  struct VConfig {
    static constexpr pipeline::KVTiling kv = tile.v_tiling();
  };
  using KProducer = pipeline::TMAProducerPipeline<T, KConfig, true, Release>;
  using VProducer = pipeline::TMAProducerPipeline<T, VConfig, false, Release>;
  using KRing = typename KProducer::Pipeline;
  using VRing = typename VProducer::Pipeline;

  // This CTA's rows of a half of Q, and of O in the same place when they are done.
  static constexpr arch::OperandTile q_tile =
      pipeline::tile_layout_k_major(sizeof(T), kRows, tile.depth, tile.swizzle);
  static constexpr int q_elements = kRows * tile.depth;
  static constexpr int slot_elements = tile.BN / tile.ctas * tile.depth;
  static constexpr int chunk = tile.swizzle_elements();  // columns of a panel
  // Warps that read the work: eight of softmax, four of correction, multiply, load (gather: two).
  static PAGODA_DEVICE uint32_t work_readers(bool is_gathered) { return is_gathered ? 15 : 14; }

  // Columns of O, that is of V, in products: those that nobody reads are left out in batches of 32.
  static PAGODA_DEVICE int32_t output_columns(const AttentionParams& params) {
    return core::align_up(params.dim_vo, 32);
  }
  // Rows of a tile are counted in blocks of kRows: those of a product stand side by side.
  static PAGODA_DEVICE int32_t block_of(int half) { return half * tile.ctas + Group::rank(); }
};

// From softmax to correction, a value for each row: factors of O, at the end of the rows their sums.
using FactorPipeline = pipeline::MBarPipeline<1>;

template <class Config>
struct Storage {
  using Ops = Operands<Config>;
  using T = typename Ops::T;
  static constexpr TileConfig tile = Config::tile;

  arch::SharedArray<T, kHalves * Ops::q_elements, 1024> q;
  arch::SharedArray<T, tile.slots * Ops::slot_elements, 1024> kv;  // K's ring, then V's; or one
  arch::SharedArray<kernels::FloatPair, kHalves * kRows> factors;
  arch::MBarrier k_ring[Ops::KRing::num_mbars];  // of both where they share one
  arch::MBarrier v_ring[Ops::VRing::num_mbars];
  arch::MBarrier v_tail;  // V of a tile that ends inside: before its tail is zeroed
  // Of a pair, the leader's, one a stage of V: the other CTA's tail there is zeroed. That CTA may be a tail or
  // more ahead, but not in one stage.
  static constexpr int kTailStages = tile.ctas == 2 ? Ops::VRing::num_kv_stages : 1;
  arch::MBarrier v_tail_of_other[kTailStages];
  arch::MBarrier q_full[kHalves], q_empty[kHalves];
  arch::MBarrier s_full[kHalves];
  arch::MBarrier p_full[kHalves][2];  // the first part of P and O, the second part of P
  arch::MBarrier o_full[kHalves];
  arch::MBarrier factor_ring[kHalves][FactorPipeline::num_mbars];
  arch::SharedArray<uint32_t, kHalves> arrivals;  // at a split unit, seen by the correction
  arch::SharedArray<uint32_t, 1> tmem;            // address of tensor memory
  kernels::WorkRing work;
  kernels::StreamKStorage share;
};

// Tensor memory of a half; TileConfig::tmem() is the whole map.
template <class Config>
struct Tmem {
  arch::TmemPtr base;

  [[nodiscard]] PAGODA_DEVICE arch::TmemPtr s(int half) const {
    return base.columns(half * Config::tile.BN);
  }
  // P overwrites S. The fault: that of the other half, which its softmax may not have read.
  [[nodiscard]] PAGODA_DEVICE arch::TmemPtr p(int half) const {
    return arch::mutable_place("P over the other half's S", s(half), s(1 - half));
  }
  [[nodiscard]] PAGODA_DEVICE arch::TmemPtr o(int half) const {
    return base.columns(kHalves * Config::tile.BN + half * Config::tile.depth);
  }
};

// Tokens whose rows make a half in one CTA; rows past the last whole token are nobody's.
PAGODA_DEVICE int32_t tokens_of_half(const Work& work) { return kRows / work.num_heads; }
// Halves that hold queries, in any CTA.
template <class Config>
PAGODA_DEVICE int32_t num_halves(const Work& work) {
  return work.valid_tokens > Config::tile.ctas * tokens_of_half(work) ? 2 : 1;
}
// Rows of one half keep both softmax warpgroups busy: key tiles of even and odd number (from the last
// to the first) have an S, an O and sums of their own, as if they were of two halves, and are merged at the
// end. Not so in pairs, which are for many rows.
template <class Config>
PAGODA_DEVICE bool has_two_streams(const Work& work) {
  if constexpr (Config::tile.ctas == 2) return false;
  return work.walk.num_tiles > 1 && num_halves<Config>(work) == 1;
}

}  // namespace pagoda::mha_sm100
