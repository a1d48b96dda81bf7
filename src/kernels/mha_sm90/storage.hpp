// Storage: the shared memory of an instance, every buffer and every barrier. README.md has its map
// in bytes, and a table of who arrives at each barrier and who waits.
#pragma once

#include <cstdint>
#include <type_traits>

#include "arch/fault.hpp"
#include "arch/mbarrier.hpp"
#include "arch/memory.hpp"
#include "arch/wgmma.hpp"
#include "kernels/mha_sm90/config.hpp"
#include "kernels/mha_sm90/own_tiles.hpp"
#include "kernels/mha_sm90/schedule.hpp"
#include "pipeline/staged_pipeline.hpp"
#include "pipeline/tma_producer_pipeline.hpp"

namespace pagoda::mha_sm90 {

// Types, sizes and arrival counts that follow from a Config.
template <class Config>
struct Operands {
  using T = typename Config::T;
  static constexpr TileConfig tile = Config::tile;
  static_assert(tile.element_bytes == sizeof(T));
  // The type of wgmma's operands.
  using Product = std::conditional_t<tile.widens(), arch::Half, T>;
  // The type of O that TMA stores; others are converted.
  using Out = std::conditional_t<sizeof(T) == 1, arch::BFloat16, T>;
  struct KConfig {
    static constexpr pipeline::KVTiling kv = tile.k_tiling();
  };
  struct VConfig {
    static constexpr pipeline::KVTiling kv = tile.v_tiling();
  };
  // Element type of K and V as TMA loads them, and in the stages that consumers read.
  static constexpr bool is_cache_fp8 = tile.load == LoadKind::kTmaFp8 || tile.widens();
  using LoadedKV = std::conditional_t<is_cache_fp8, arch::Float8E4M3, T>;
  using KV = std::conditional_t<tile.widens(), Product, LoadedKV>;
  using KProducer = pipeline::TMAProducerPipeline<LoadedKV, KConfig, true>;
  using VProducer = pipeline::TMAProducerPipeline<LoadedKV, VConfig, false>;
  // Of the tiles as TMA loads them, where a warpgroup converts them, and as consumers read them.
  using LoadedKRing = typename KProducer::Pipeline;
  using LoadedVRing = typename VProducer::Pipeline;
  using KRing = pipeline::StagedPipeline<tile.k_stages, tile.k_parts()>;
  using VRing = pipeline::StagedPipeline<tile.v_stages>;
  // K and V as the consumers multiply them.
  static constexpr arch::OperandTile k_tile =
      pipeline::tile_layout_k_major(sizeof(KV), tile.BN, tile.depth_qk, tile.swizzle);
  static constexpr arch::OperandTile v_tile =
      tile.transposes_v()
          ? pipeline::tile_layout_k_major(sizeof(T), tile.depth_vo, tile.BN,
                                          tile.transposed_swizzle())
          : pipeline::tile_layout_mn_major(sizeof(KV), tile.depth_vo, tile.BN, tile.swizzle);

  using QRing = pipeline::StagedPipeline<tile.q_stages>;

  // A Q stage: the rows of one consumer. Its epilogue stages O there, or in `out`.
  static constexpr arch::OperandTile q_tile =
      pipeline::tile_layout_k_major(sizeof(T), kRows, tile.depth_qk, tile.swizzle);
  static constexpr int q_elements = kRows * tile.depth_qk;
  static constexpr int k_elements = tile.BN * tile.depth_qk;
  static constexpr int v_elements = tile.BN * tile.depth_vo;
  // Columns of a panel: the swizzle's width.
  static constexpr int chunk = static_cast<int>(swizzle_width_bytes(tile.swizzle) / sizeof(T));
  static constexpr int out_chunk =
      static_cast<int>(swizzle_width_bytes(tile.out_swizzle()) / sizeof(Out));
  // Bytes of the 16 from `column` on of a row, in a buffer of `rows` rows in panels of `chunk`
  // columns; not swizzled.
  static PAGODA_DEVICE uint32_t panel_offset(int rows, int row, int column) {
    return static_cast<uint32_t>(((column / chunk * rows + row) * chunk + column % chunk) *
                                 sizeof(T));
  }
  // The same of a buffer of kRows rows of O.
  static PAGODA_DEVICE uint32_t out_panel_offset(int row, int column) {
    return static_cast<uint32_t>(
        ((column / out_chunk * kRows + row) * out_chunk + column % out_chunk) * sizeof(Out));
  }
  // Whether Q has stages in shared memory. With mma.sync the consumers load it into registers.
  static constexpr bool has_q_stages = !tile.uses_mma_sync();
  // Warps that read work tiles: those that load, those that convert, and the consumers'.
  static constexpr uint32_t work_readers =
      (tile.num_multiplying() + tile.num_converters()) * 4 +
      (tile.load == LoadKind::kGather ? 4 : (has_q_stages && !tile.is_latent ? 3 : 2));
  // Arrivals that release a K or V stage, or a part of it: one of every consumer warp.
  static constexpr uint32_t releases = tile.num_multiplying() * 4;
  // Arrivals that fill one: one with TMA's bytes, or one of each of two gathering warps, or of each
  // of four converting warps.
  static constexpr uint32_t k_fills = tile.widens() ? 4 : (tile.load == LoadKind::kGather ? 2 : 1);
  static constexpr uint32_t v_fills = tile.transposes_v() ? 4 : k_fills;
  static constexpr uint32_t q_fills = OwnTilesOf<Config>::are_found_by_load_q ? 2 : 1;
  // Bytes of a K or V tile of 8-bit elements, rounded up to 16 for each of 128 threads.
  static constexpr int raw_bytes =
      (tile.BN * (tile.depth_qk > tile.depth_vo ? tile.depth_qk : tile.depth_vo) + 2047) / 2048 *
      2048;
};

// The descriptor of an operand of wgmma at a shared address.
PAGODA_DEVICE arch::SmemDescriptor descriptor_at(arch::OperandTile operand, uint32_t address) {
  operand.start_bytes = address;
  return arch::encode(arch::describe(operand), arch::DescriptorFormat::kSm90);
}

// Exchange between the four warps of a consumer with mma.sync, each of which has sums and O of its
// own keys (warp_epilogue.hpp).
template <class Ops>
struct WarpMergeStorage {
  static constexpr bool is_used = Ops::tile.uses_mma_sync();
  static constexpr int slab_rows = 8, slab_columns = 64;
  static constexpr int pitch = slab_columns + 4;  // floats: rows of a slab start in different banks
  // [warp][row][4]: pivot, sum, maximum, unused
  arch::SharedArray<float, is_used ? 4 * kWarpRows * 4 : 4, 16> stats;
  // [warp][row][pitch]: columns of O
  arch::SharedArray<float, is_used ? 4 * slab_rows * pitch : 4, 16> slab;
};

// K and V as TMA has loaded them, on their way to the stages that consumers read: widens both,
// transposes_v V alone, and then O on its way to TMA.
template <class Ops>
struct ConversionStorage {
  static constexpr TileConfig tile = Ops::tile;
  static constexpr bool has_k = tile.widens(), has_v = tile.num_converters() > 0;
  static constexpr bool has_out = tile.transposes_v();
  template <class T, bool is_used, int elements>
  using Array = arch::SharedArray<T, is_used ? elements : 16, is_used ? 1024 : 16>;
  using KProducer = typename Ops::KProducer;
  using VProducer = typename Ops::VProducer;
  // [stage][BN, loaded_depth]
  Array<typename Ops::LoadedKV, has_k, Ops::LoadedKRing::num_kv_stages * KProducer::elements> k;
  Array<typename Ops::LoadedKV, has_v, Ops::LoadedVRing::num_kv_stages * VProducer::elements> v;
  // [consumer][64 rows, depth_vo]
  Array<typename Ops::Out, has_out, tile.num_consumers * kRows * tile.depth_vo> out;
  arch::MBarrier k_ring[has_k ? Ops::LoadedKRing::num_mbars : 1];
  arch::MBarrier v_ring[has_v ? Ops::LoadedVRing::num_mbars : 1];
};

// What the two warpgroups of latent rows share besides P (latent_channel.hpp).
template <class Ops>
struct LatentStorage {
  static constexpr bool is_used = Ops::tile.is_latent;
  using Ring = pipeline::StagedPipeline<2>;
  // [stage][row][4]: the factor of O; after the last KV tile pivot, sum and maximum
  arch::SharedArray<float, is_used ? 2 * kRows * 4 : 4, 16> rows;
  arch::MBarrier ring[is_used ? Ring::num_mbars : 1];
};

template <class Config>
struct Storage {
  using Ops = Operands<Config>;
  using T = typename Ops::T;
  static constexpr TileConfig tile = Config::tile;

  // [stage][consumer][64 rows, depth_qk]
  arch::SharedArray<T, Ops::has_q_stages ? tile.q_stages * tile.num_consumers * Ops::q_elements : 1,
                    1024>
      q;
  // [stage][BN, depth_qk], [stage][BN, depth_vo]
  arch::SharedArray<typename Ops::KV, tile.k_stages * Ops::k_elements, 1024> k;
  arch::SharedArray<typename Ops::KV, tile.is_latent ? 16 : tile.v_stages * Ops::v_elements,
                    tile.is_latent ? 16 : 1024>
      v;
  // kGather: tiles of an fp8 cache before conversion, [tile][copy][thread of two warps] of 16
  // bytes.
  arch::SharedArray<arch::Words<4>, tile.raw_tiles == 0 ? 1 : tile.raw_tiles * Ops::raw_bytes / 16>
      raw;
  arch::MBarrier k_ring[Ops::KRing::num_mbars];
  arch::MBarrier v_ring[Ops::VRing::num_mbars];
  arch::MBarrier q_ring[tile.num_consumers][Ops::QRing::num_mbars];
  arch::MBarrier q_issued;  // q_before_kv.hpp
  // Tokens: load K has so few copies of the work tile left that the next one is drawn.
  arch::MBarrier draws;
  arch::MBarrier v_tail;  // the copies of a V tile whose tail is zeroed then (load.hpp)
  // mma.sync where Q does not stay in registers: Q as A fragments, [step of 16 columns][lane].
  static constexpr int q_words =
      !Ops::has_q_stages && !tile.keeps_q_in_registers() ? tile.depth_qk / 16 * 32 : 1;
  arch::SharedArray<arch::Words<4>, q_words> q_operands;
  LatentStorage<Ops> latent;
  WarpMergeStorage<Ops> merge;
  // A word of each warpgroup that multiplies: whether it is the last to finish a split row tile
  // (split_rows.hpp).
  arch::SharedArray<uint32_t, tile.num_multiplying()> arrivals;
  WorkRing work;
  StreamKStorage stream_k;
  ConversionStorage<Ops> conversion;
  // [stage of Q][consumer]; full and empty with Q.
  arch::SharedArray<
      OwnTiles, OwnTilesOf<Config>::are_found_by_load_q ? tile.q_stages * tile.num_consumers : 1>
      own_tiles;

  [[nodiscard]] PAGODA_DEVICE arch::SharedPtr<OwnTiles> own_tiles_at(uint32_t stage, int consumer) {
    return own_tiles.at(static_cast<int>(stage) * tile.num_consumers + consumer);
  }
  [[nodiscard]] PAGODA_DEVICE auto q_at(uint32_t stage, int consumer) {
    stage = arch::mutable_stage("Q stages share memory", stage);
    return q.at((static_cast<int>(stage) * tile.num_consumers + consumer) * Ops::q_elements);
  }
  // The ring and the stages that TMA fills with K, and with V.
  [[nodiscard]] PAGODA_DEVICE typename Ops::KProducer k_producer() {
    if constexpr (tile.widens()) {
      return Ops::KProducer::create(conversion.k_ring, conversion.k.data());
    } else {
      return Ops::KProducer::create(k_ring, k.data());
    }
  }
  [[nodiscard]] PAGODA_DEVICE typename Ops::VProducer v_producer() {
    if constexpr (tile.num_converters() > 0) {
      return Ops::VProducer::create(conversion.v_ring, conversion.v.data());
    } else {
      return Ops::VProducer::create(v_ring, v.data());
    }
  }
};

}  // namespace pagoda::mha_sm90
