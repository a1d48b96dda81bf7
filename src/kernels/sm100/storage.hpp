// The shared memory of an instance: every buffer and every barrier, on one page. Who signals and who
// waits: README.md.
#pragma once

#include <cstdint>

#include "arch/mbarrier.hpp"
#include "arch/memory.hpp"
#include "arch/tcgen05.hpp"
#include "kernels/attention/key_shares.hpp"
#include "kernels/attention/split_rows.hpp"
#include "kernels/attention/work_ring.hpp"
#include "kernels/sm100/config.hpp"
#include "pipeline/mbar_pipeline.hpp"
#include "pipeline/tma_producer_pipeline.hpp"

namespace pagoda::sm100 {

using kernel::AttentionParams;
using kernel::Work;
using kernel::WorkReader;

// A stage is released when the products that read it are complete: by the lane that issued them.
struct CommitRelease {
  static PAGODA_DEVICE void release(arch::MBarrier& empty, int32_t predicate, arch::Where where) {
    if (predicate != 0) arch::tcgen05_commit<1>(empty, where);
  }
};

template <class Config>
struct Operands {
  using T = typename Config::T;
  static constexpr TileConfig tile = Config::tile;
  static_assert(tile.fault() == nullptr, "the tile does not fit together: see TileConfig::fault");
  static_assert(tile.element_bytes == sizeof(T));
  struct KConfig {
    static constexpr KVTiling kv = tile.k_tiling();
  };
  struct VConfig {
    static constexpr KVTiling kv = tile.v_tiling();
  };
  using KProducer = TMAProducerPipeline<T, KConfig, true, CommitRelease>;
  using VProducer = TMAProducerPipeline<T, VConfig, false, CommitRelease>;
  using KRing = typename KProducer::Pipeline;
  using VRing = typename VProducer::Pipeline;

  // A half of Q, and of O in the same place when the rows are done.
  static constexpr arch::OperandTile q_tile =
      tile_layout_k_major(sizeof(T), kRows, tile.depth, tile.swizzle);
  static constexpr int q_elements = kRows * tile.depth;
  static constexpr int slot_elements = tile.BN * tile.depth;
  static constexpr int chunk = tile.swizzle_elements();  // columns of a panel
  // Warps that read the work: eight of softmax, four of correction, multiply, load (gather: two).
  static PAGODA_DEVICE uint32_t work_readers(bool is_gathered) { return is_gathered ? 15 : 14; }
};

// From softmax to correction, a value for each row: factors of O, at the end of the rows their sums.
using FactorPipeline = MBarPipeline<1>;

template <class Config>
struct Storage {
  using Ops = Operands<Config>;
  using T = typename Ops::T;
  static constexpr TileConfig tile = Config::tile;

  arch::SharedArray<T, kHalves * Ops::q_elements, 1024> q;
  arch::SharedArray<T, tile.slots * Ops::slot_elements, 1024> kv;  // K's ring, then V's; or one
  arch::SharedArray<kernel::FloatPair, kHalves * kRows> factors;
  arch::MBarrier k_ring[Ops::KRing::num_mbars];  // of both where they share one
  arch::MBarrier v_ring[Ops::VRing::num_mbars];
  arch::MBarrier v_tail;  // V of a tile that ends inside: before its tail is zeroed
  arch::MBarrier q_full[kHalves], q_empty[kHalves];
  arch::MBarrier s_full[kHalves];
  arch::MBarrier p_full[kHalves][2];  // the first part of P and O, the second part of P
  arch::MBarrier o_full[kHalves];
  arch::MBarrier factor_ring[kHalves][FactorPipeline::num_mbars];
  arch::SharedArray<uint32_t, kHalves> arrivals;  // at a split unit, seen by the correction
  arch::SharedArray<uint32_t, 1> tmem;            // address of tensor memory
  kernel::WorkRing work;
  kernel::ShareStorage share;
};

// Tensor memory of a half; TileConfig::tmem() is the whole map.
template <class Config>
struct Tmem {
  arch::TmemPtr base;

  [[nodiscard]] PAGODA_DEVICE arch::TmemPtr s(int half) const {
    return base.columns(half * Config::tile.BN);
  }
  [[nodiscard]] PAGODA_DEVICE arch::TmemPtr o(int half) const {
    return base.columns(kHalves * Config::tile.BN + half * Config::tile.depth);
  }
};

// Tokens whose rows make a half; rows past the last whole token are nobody's.
PAGODA_DEVICE int32_t tokens_of_half(const Work& work) { return kRows / work.num_heads; }
// Halves that hold queries.
PAGODA_DEVICE int32_t num_halves(const Work& work) {
  return work.valid_tokens > tokens_of_half(work) ? 2 : 1;
}
// Rows of one half keep both softmax warpgroups busy: key tiles of even and odd number (from the last
// to the first) have an S, an O and sums of their own, as if they were of two halves, and are merged at the
// end.
PAGODA_DEVICE bool has_two_streams(const Work& work) {
  return work.walk.num_tiles > 1 && num_halves(work) == 1;
}

}  // namespace pagoda::sm100
