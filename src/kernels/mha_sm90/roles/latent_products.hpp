// LatentProducts: the operands of the products of latent rows, in a stage of K that holds V, and
// how both warpgroups release them. When S of a tile is complete, P takes the place of the columns
// of K that are none of V.
//
//   part of a stage        read by                      until
//   V, first half          Q K', P V of the first       P V
//   V, second half         Q K', P V of the second      P V
//   K alone, then P        Q K'; P V of both            P V
#pragma once

#include <cstdint>

#include "arch/wgmma.hpp"
#include "kernels/common/row_lines.hpp"
#include "kernels/mha_sm90/roles/latent_channel.hpp"
#include "kernels/mha_sm90/roles/load_latent.hpp"
#include "kernels/mha_sm90/storage.hpp"

namespace pagoda::mha_sm90 {

// What a warpgroup keeps from a work tile to the next.
template <class Config>
struct LatentState {
  using Ops = Operands<Config>;

  // `part`: of O's columns; the first makes S and P.
  PAGODA_DEVICE LatentState(Storage<Config>& storage, int part)
      : k(Ops::KRing::consumer(storage.k_ring)), channel(storage.latent, part == 0) {}

  typename Ops::KRing k;  // of the next S, or of the next P V of the second warpgroup
  typename Ops::QRing::State q = Ops::QRing::State::consumer();
  LatentChannel<Config> channel;
};

// Of one of the warpgroups that share the rows.
template <class Config>
struct LatentProducts {
  using Ops = Operands<Config>;
  using Product = typename Ops::Product;
  static constexpr TileConfig tile = Config::tile;
  static constexpr int columns = tile.out_columns();
  static constexpr int keys_of_mma = kKeysOfMma<Product>;
  static constexpr int steps_pv = tile.BN / keys_of_mma;
  static constexpr int parts_pv = columns / tile.panel_columns();  // of a stage
  static_assert(columns % tile.panel_columns() == 0);
  static constexpr int p_part = 2 * parts_pv;  // and the last
  static_assert(p_part + 1 == tile.k_parts());
  // P as the A operand of P V: as many bytes as a panel of K.
  static constexpr arch::OperandTile p_tile =
      pipeline::tile_layout_k_major(sizeof(Product), kRows, tile.BN, tile.p_swizzle());

  // V of the columns of warpgroup `part`, from instruction `step`'s first key on. `stage`: of all V
  // of a stage.
  static PAGODA_DEVICE arch::SmemDescriptor values(arch::SmemDescriptor stage, int part, int step) {
    constexpr arch::OperandTile v_tile = Ops::v_tile;
    const int from = arch::mutable_value("V of the tile's first keys", step, 0);
    const uint32_t to_part = tile_offset(v_tile, columns, 0);
    return arch::advance(
        stage, static_cast<uint32_t>(part) * to_part + tile_offset(v_tile, 0, keys_of_mma * from));
  }
  // Of a stage of the ring of K.
  static PAGODA_DEVICE uint32_t stage_bytes(uint32_t stage) {
    return arch::mutable_stage("K stages share memory", stage) * (Ops::k_elements * 2);
  }

  // P in a stage of K.
  static PAGODA_DEVICE arch::SharedPtr<Product> p_at(Storage<Config>& storage, uint32_t stage) {
    return storage.k.at(static_cast<int>(stage_bytes(stage)) / 2 +
                        p_part * tile.panel_columns() * tile.BN);
  }
  // O += P V, or O = P V, of the columns of warpgroup `part`, as one wgmma group.
  static PAGODA_DEVICE void issue_pv(float (&o)[columns / 2], int part,
                                     arch::SmemDescriptor p_descriptor,
                                     arch::SmemDescriptor v_descriptor, uint32_t stage,
                                     bool accumulates) {
    const uint32_t to_stage = stage_bytes(stage);
    const arch::SmemDescriptor v = arch::advance(v_descriptor, to_stage);
    const arch::SmemDescriptor p = arch::advance(p_descriptor, to_stage);
    constexpr arch::OperandTile p_tile_of = p_tile;
    arch::wgmma_fence();
    PAGODA_UNROLL
    for (int k = 0; k < steps_pv; ++k) {
      const uint32_t offset = tile_offset(p_tile_of, 0, keys_of_mma * k);
      arch::Wgmma<Product, columns, arch::Major::kK, Ops::v_tile.major>::ss(
          o, arch::advance(p, offset), values(v, part, k), accumulates || k > 0);
    }
    arch::wgmma_commit_group();
  }

  // One arrival a warp at each part from `begin` to `end` - 1 of `stage`.
  template <int begin, int end>
  static PAGODA_DEVICE void release(const typename Ops::KRing& ring, uint32_t stage) {
    const int32_t elect = arch::elect_one();
    pipeline::for_each_part<end - begin>(
        [&]<int i>() { ring.template consumer_release_at<begin + i>(stage, elect); });
  }

  // Else O passes through Q's stage, which is released after the epilogue.
  static PAGODA_DEVICE bool releases_q_early(const AttentionParams& params) {
    return kernels::has_whole_lines<typename Ops::Out, tile.depth_vo>(params);
  }
  // The warp's products have read Q, or none of its lanes will access the stage any more.
  static PAGODA_DEVICE void release_q(Storage<Config>& storage) {
    const typename Ops::QRing ring{storage.q_ring[0], Ops::QRing::State::consumer()};
    ring.consumer_release_at(0, arch::elect_one());
  }
  // Where this warpgroup's epilogue may convert O.
  static PAGODA_DEVICE arch::SharedPtr<typename Ops::Out> out_smem(Storage<Config>& storage,
                                                                   int part) {
    return storage.q.at(part * (Ops::q_elements / 2));
  }
};

}  // namespace pagoda::mha_sm90
