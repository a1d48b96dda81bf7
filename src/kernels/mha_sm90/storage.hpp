// The shared memory of an instance: every buffer and every barrier, on one page. Who signals and who
// waits: README.md.
#pragma once

#include <cstdint>
#include <type_traits>

#include "arch/fault.hpp"
#include "arch/mbarrier.hpp"
#include "arch/memory.hpp"
#include "kernels/mha_sm90/config.hpp"
#include "kernels/mha_sm90/work.hpp"
#include "pipeline/staged_pipeline.hpp"
#include "pipeline/tma_producer_pipeline.hpp"

namespace pagoda::mha_sm90 {

template <class Config>
struct Operands {
  using T = typename Config::T;
  static constexpr TileConfig tile = Config::tile;
  struct KConfig {
    static constexpr pipeline::KVTiling kv = tile.k_tiling();
  };
  struct VConfig {
    static constexpr pipeline::KVTiling kv = tile.v_tiling();
  };
  // Of K and V in the stages.
  using KV = std::conditional_t<tile.load == LoadKind::kTmaFp8, arch::Float8E4M3, T>;
  using KProducer = pipeline::TMAProducerPipeline<KV, KConfig, true>;
  using VProducer = pipeline::TMAProducerPipeline<KV, VConfig, false>;
  using KRing = typename KProducer::Pipeline;
  using VRing = typename VProducer::Pipeline;

  using QRing = pipeline::StagedPipeline<tile.q_stages>;

  // One warpgroup's rows of Q, and of O in the same place when the rows are done.
  static constexpr arch::OperandTile q_tile =
      pipeline::tile_layout_k_major(sizeof(T), kRows, tile.depth_qk, tile.swizzle);
  static constexpr int q_elements = kRows * tile.depth_qk;
  static constexpr int k_elements = tile.BN * tile.depth_qk;
  static constexpr int v_elements = tile.BN * tile.depth_vo;
  // Columns of a panel.
  static constexpr int chunk = static_cast<int>(swizzle_width_bytes(tile.swizzle) / sizeof(T));
  // Whose place in shared memory a load role fills; otherwise consumers bring their own.
  static constexpr bool has_q_place = !tile.has_warp_products();
  // Readers of the work: the load warps (of K, V and Q; or four that gather) and every consumer warp.
  static constexpr uint32_t work_readers =
      tile.num_consumers * 4 + (tile.load == LoadKind::kGather ? 4 : (has_q_place ? 3 : 2));
  // Arrivals that release a stage: one of every consumer warp.
  static constexpr uint32_t releases = tile.num_consumers * 4;
  // Arrivals that fill one: the issue of a TMA copy, or one of every gathering warp.
  static constexpr uint32_t fills = tile.load == LoadKind::kGather ? 2 : 1;
  // Bytes of a tile of 8-bit elements, K or V, in whole pieces of 16 for every gathering thread.
  static constexpr int raw_bytes =
      (tile.BN * (tile.depth_qk > tile.depth_vo ? tile.depth_qk : tile.depth_vo) + 2047) / 2048 *
      2048;
};

// Where the warps of a consumer, each with keys of its own, leave what they have for one another
// (merge_warps.hpp): statistics, and a slab of 8 rows and 64 columns of O at a time.
template <class Ops>
struct MergePlace {
  static constexpr bool is_used = Ops::tile.has_warp_products();
  static constexpr int slab_rows = 8, slab_columns = 64;
  static constexpr int pitch = slab_columns + 4;  // floats: rows of a slab begin in different banks
  arch::SharedArray<float, is_used ? 4 * kWarpRows * 4 : 4, 16>
      stats;  // [warp][row][4], see Partial
  arch::SharedArray<float, is_used ? 4 * slab_rows * pitch : 4, 16> slab;  // [warp][row][pitch]
};

template <class Config>
struct Storage {
  using Ops = Operands<Config>;
  using T = typename Ops::T;
  static constexpr TileConfig tile = Config::tile;

  // [stage][consumer]
  arch::SharedArray<T, Ops::has_q_place ? tile.q_stages * tile.num_consumers * Ops::q_elements : 1,
                    1024>
      q;
  arch::SharedArray<typename Ops::KV, tile.k_stages * Ops::k_elements, 1024> k;
  arch::SharedArray<typename Ops::KV, tile.v_stages * Ops::v_elements, 1024> v;
  // Gather: an fp8 cache before its conversion, each piece its thread's own.
  arch::SharedArray<arch::Words<4>, tile.raw_tiles == 0 ? 1 : tile.raw_tiles * Ops::raw_bytes / 16>
      raw;
  arch::MBarrier k_ring[Ops::KRing::num_mbars];
  arch::MBarrier v_ring[Ops::VRing::num_mbars];
  arch::MBarrier q_ring[tile.num_consumers][Ops::QRing::num_mbars];
  arch::MBarrier q_requested;  // the first of the CTA (request_order.hpp)
  arch::MBarrier v_tail;       // V of a tile that ends inside: before its tail is zeroed
  // Products by warps: Q as A operands, [step of 16 columns][lane], where it is not kept in registers.
  static constexpr int q_words = !Ops::has_q_place && !tile.keeps_q() ? tile.depth_qk / 16 * 32 : 1;
  arch::SharedArray<arch::Words<4>, q_words> q_operands;
  MergePlace<Ops> merge;
  arch::SharedArray<uint32_t, tile.num_consumers> arrivals;  // at a split unit, seen by a warpgroup
  WorkRing work;
  ShareStorage share;

  [[nodiscard]] PAGODA_DEVICE auto q_place(uint32_t stage, int consumer) {
    stage = arch::mutable_stage("Q stages share memory", stage);
    return q.at((static_cast<int>(stage) * tile.num_consumers + consumer) * Ops::q_elements);
  }
};

}  // namespace pagoda::mha_sm90
