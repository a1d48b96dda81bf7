// The shared memory of an instance: every buffer and every barrier, on one page. Both CTAs of a pair have
// it at the same addresses. Who signals and who waits: README.md.
#pragma once

#include <cstdint>

#include "arch/cluster.hpp"
#include "arch/fault.hpp"
#include "arch/mbarrier.hpp"
#include "arch/memory.hpp"
#include "arch/tcgen05.hpp"
#include "kernels/common/split_rows.hpp"
#include "kernels/common/work_ring.hpp"
#include "kernels/mha_sm100_d512/config.hpp"
#include "pipeline/kv_tiling.hpp"
#include "pipeline/mbar_pipeline.hpp"
#include "pipeline/staged_pipeline.hpp"

namespace pagoda::mha_sm100_d512 {

using kernels::AttentionParams;
using kernels::Work;
using kernels::WorkReader;

inline constexpr int kLeader = 0;  // rank of the CTA that multiplies for both
inline constexpr uint16_t kBothCtas = 0b11;

// By the lane that issued the products: what they read is free, what they wrote is there, in both CTAs.
PAGODA_DEVICE void commit_to_both(arch::MBarrier& barrier,
                                  arch::Where where = arch::Where::current()) {
  arch::tcgen05_commit_multicast<kPair>(barrier, kBothCtas, where);
}
struct CommitRelease {
  static PAGODA_DEVICE void release(arch::MBarrier& empty, int32_t predicate, arch::Where where) {
    if (predicate != 0) commit_to_both(empty, where);
  }
  // The commit comes from the leader: an acquire of scope .cta would not see what came before it.
  static PAGODA_DEVICE void wait(arch::MBarrier& empty, uint32_t parity, arch::Where where) {
    empty.wait_cluster(parity, where);
  }
};

template <class Config>
struct Operands {
  using T = typename Config::T;
  static constexpr TileConfig tile = Config::tile;
  static_assert(tile.fault() == nullptr, "the tile does not fit together: see TileConfig::fault");
  static_assert(tile.element_bytes == sizeof(T));

  // Of this CTA.
  static constexpr arch::OperandTile q_tile =
      pipeline::tile_layout_k_major(sizeof(T), tile.block_rows, tile.depth, tile.swizzle);
  static constexpr arch::OperandTile p_tile =
      pipeline::tile_layout_k_major(sizeof(T), tile.block_rows, tile.BN, tile.swizzle);
  static constexpr arch::OperandTile k_tile =
      pipeline::tile_layout_k_major(sizeof(T), tile.BN / 2, tile.BK0, tile.swizzle);
  static constexpr arch::OperandTile v_tile =
      pipeline::tile_layout_mn_major(sizeof(T), tile.BK0, tile.BK1(), tile.swizzle);
  static constexpr int slot_elements = tile.slot_bytes() / static_cast<int>(sizeof(T));
  static constexpr int chunk = tile.swizzle_elements();  // columns of a panel
  using Ring = pipeline::StagedPipeline<tile.slots, 1, CommitRelease>;

  // Warps that read the work: four of softmax, four of correction, load; of the leader multiply, too.
  static PAGODA_DEVICE uint32_t work_readers(int rank) { return rank == kLeader ? 10 : 9; }
};

// From softmax to correction, a value for each lane: factors of O, at the end of the rows their sums.
using FactorPipeline = pipeline::MBarPipeline<1>;

template <class Config>
struct Storage {
  using Ops = Operands<Config>;
  using T = typename Ops::T;
  static constexpr TileConfig tile = Config::tile;

  arch::SharedArray<T, tile.block_rows * tile.depth, 1024> q;  // when the rows are done: O
  arch::SharedArray<T, tile.block_rows * tile.BN, 1024> p;
  arch::SharedArray<T, tile.slots * Ops::slot_elements, 1024> kv;
  arch::SharedArray<kernels::FloatPair, arch::kTmemLanes> factors;
  arch::SharedArray<float, 2 * arch::kTmemLanes> maxima;  // of lanes that share a row, in turns
  arch::MBarrier ring[Ops::Ring::num_mbars];              // full: the leader's counts for both
  arch::MBarrier v_tail;  // V of a tile that ends inside: before its tail is zeroed
  arch::MBarrier q_full;  // the leader's
  arch::MBarrier q_empty;
  arch::MBarrier s_full[2];
  arch::MBarrier p_full;  // the leader's: P, and O is scaled, in both CTAs
  arch::MBarrier o_full;
  arch::MBarrier factor_ring[FactorPipeline::num_mbars];
  arch::SharedArray<uint32_t, 1> tmem;  // address of tensor memory
  kernels::WorkRing work;
};

// Tensor memory; TileConfig::tmem() is the whole map.
template <class Config>
struct Tmem {
  arch::TmemPtr base;

  [[nodiscard]] PAGODA_DEVICE arch::TmemPtr s(uint32_t buffer) const {
    constexpr TmemMap map = Config::tile.tmem();
    return base.columns(
        arch::mutable_stage("S buffers share tensor memory", buffer) == 0 ? map.s[0] : map.s[1]);
  }
  [[nodiscard]] PAGODA_DEVICE arch::TmemPtr o(int section) const {
    return base.columns(section * Config::tile.lane_columns());
  }
};

}  // namespace pagoda::mha_sm100_d512
