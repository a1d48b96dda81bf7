// The shared memory of an instance: every buffer and every barrier, at the same addresses in both
// CTAs of a pair. README.md has the byte ranges, and who arrives at and waits for each barrier.
#pragma once

#include <cstdint>

#include "arch/cluster.hpp"
#include "arch/fault.hpp"
#include "arch/mbarrier.hpp"
#include "arch/memory.hpp"
#include "arch/tcgen05.hpp"
#include "kernels/common/sm100/factor_channel.hpp"
#include "kernels/common/sm100/pair_queue.hpp"
#include "kernels/common/stream_k_start.hpp"
#include "kernels/common/work_ring.hpp"
#include "kernels/mha_sm100_d512/config.hpp"
#include "pipeline/kv_tiling.hpp"
#include "pipeline/staged_pipeline.hpp"

namespace pagoda::mha_sm100_d512 {

using kernels::AttentionParams;
using kernels::Work;
using kernels::WorkReader;
using kernels::sm100::FactorPipeline;

inline constexpr int kLeader = 0;  // rank of the CTA that issues the MMAs of the pair
inline constexpr uint16_t kBothCtas = 0b11;

// Arrives on `barrier` in both CTAs when the MMAs issued so far have completed: their operands may
// be overwritten, their results read. The lane that issued them calls.
PAGODA_DEVICE void commit_to_both(arch::MBarrier& barrier,
                                  arch::Where where = arch::Where::current()) {
  arch::tcgen05_commit_multicast<kPair>(barrier, kBothCtas, where);
}
// How the MMA warp releases a slot of K or V, and how the load warps wait for that.
struct CommitRelease {
  static PAGODA_DEVICE void release(arch::MBarrier& empty, int32_t predicate, arch::Where where) {
    if (predicate != 0) commit_to_both(empty, where);
  }
  // The leader commits for both CTAs. A wait of any scope acquires the end of the MMAs, and every
  // slot that is loaded is read by one; cluster scope would invalidate L1 (CCTL.IVALL) each time.
  static PAGODA_DEVICE void wait(arch::MBarrier& empty, uint32_t parity, arch::Where where) {
    empty.wait(parity, where);
  }
};

template <class Config>
struct Operands {
  using T = typename Config::T;
  static constexpr TileConfig tile = Config::tile;
  static_assert(tile.fault() == nullptr, "the tile does not fit together: see TileConfig::fault");
  static_assert(tile.element_bytes == sizeof(T));

  // The operands in this CTA's shared memory.
  static constexpr arch::OperandTile q_tile =
      pipeline::tile_layout_k_major(sizeof(T), tile.block_rows, tile.depth, tile.swizzle);
  static constexpr arch::OperandTile p_tile =
      pipeline::tile_layout_k_major(sizeof(T), tile.block_rows, tile.BN, tile.swizzle);
  static constexpr arch::OperandTile k_tile =
      pipeline::tile_layout_k_major(sizeof(T), tile.BN / 2, tile.BK0, tile.swizzle);
  static constexpr arch::OperandTile v_tile =
      pipeline::tile_layout_mn_major(sizeof(T), tile.BK0, tile.BK1(), tile.swizzle);
  static constexpr int slot_elements = tile.slot_bytes() / static_cast<int>(sizeof(T));
  static constexpr int panel_columns = tile.swizzle_elements();
  using Ring = pipeline::StagedPipeline<tile.slots, 1, CommitRelease>;

  // Warps that read work tiles: 4 softmax, 4 correction, 1 load (gather: 2); in the leader 1 MMA.
  static PAGODA_DEVICE uint32_t work_readers(int rank, bool is_gathered) {
    return (rank == kLeader ? 10 : 9) + (is_gathered ? 1 : 0);
  }
};

template <class Config>
struct Storage {
  using Ops = Operands<Config>;
  using T = typename Ops::T;
  static constexpr TileConfig tile = Config::tile;

  arch::SharedArray<T, tile.block_rows * tile.depth, 1024> q;  // Q; then O
  arch::SharedArray<T, tile.block_rows * tile.BN, 1024> p;
  arch::SharedArray<T, tile.slots * Ops::slot_elements, 1024> kv;
  arch::SharedArray<kernels::FloatPair, arch::kTmemLanes> factors;
  arch::SharedArray<float, 2 * arch::kTmemLanes> maxima;  // double-buffered, of two lanes per row
  arch::MBarrier ring[Ops::Ring::num_mbars];              // full: the leader's, for both CTAs
  arch::MBarrier v_tail;  // TMA has loaded the last slot of V, whose tail the load warp zeroes
  arch::MBarrier q_full;  // the leader's, for both CTAs
  arch::MBarrier q_empty;
  arch::MBarrier s_full[2];
  arch::MBarrier p_full;  // the leader's: P is stored and O rescaled in both CTAs
  arch::MBarrier o_full;
  arch::MBarrier factor_ring[FactorPipeline::num_mbars];
  arch::SharedArray<uint32_t, 1> arrivals;  // of KV splits, for the correction warps
  arch::SharedArray<uint32_t, 1> tmem;      // address of the tensor memory allocation
  kernels::WorkRing work;
  kernels::StreamKStorage share;
  kernels::sm100::PairQueue queue;
};

// Tensor memory. Columns 0..255: O; 256..383: S0; 384..511: S1 (TileConfig::tmem).
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
