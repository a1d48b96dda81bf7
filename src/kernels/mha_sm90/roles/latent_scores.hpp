// LatentScores: the mainloop of the first warpgroup of latent rows. S = Q K', softmax, P, which the
// second warpgroup gets too (latent_values.hpp), and O += P V of the first half of V's columns:
//
//   first tile                        S = Q K(n - 1)'    P = softmax(S)
//   i = n - 2 .. 0  O += P V(i + 1)   S = Q K(i)'        P = softmax(S), under the second's P V
//   after the loop  O += P V(0)                          the sums of the rows to the second
//
// P V comes before S, because there are two stages: the next tile is loaded into that of V while S
// and the softmax take their time.
#pragma once

#include <cstdint>

#include "kernels/mha_sm90/named_barriers.hpp"
#include "kernels/mha_sm90/own_tiles.hpp"
#include "kernels/mha_sm90/roles/latent_products.hpp"

namespace pagoda::mha_sm90 {

// One object in every thread of the warpgroup, for a work tile.
template <class Config>
class LatentScores {
 public:
  using Ops = Operands<Config>;
  using T = typename Config::T;
  using Row = mha_sm90::Row<Config>;
  using Products = LatentProducts<Config>;
  static constexpr TileConfig tile = Config::tile;
  static constexpr int BN = tile.BN, steps_pv = Products::steps_pv;

  PAGODA_DEVICE LatentScores(const AttentionParams& params, Storage<Config>& storage,
                             LatentState<Config>& state)
      : params_(params),
        storage_(storage),
        k_(state.k),
        q_(state.q),
        channel_(state.channel),
        q_descriptor_(descriptor_at(Ops::q_tile, storage.q.data().address())),
        k_descriptor_(descriptor_at(Ops::k_tile, storage.k.data().address())),
        v_descriptor_(descriptor_at(Ops::v_tile, storage.k.data().address())),
        p_descriptor_(descriptor_at(Products::p_tile, Products::p_at(storage, 0).address())) {}

  // Adds the keys of the reader's work tile, which has KV tiles, to `rows`, whose sums it finishes,
  // and `o`. make_rows() is called under the first product.
  template <class MakeRows>
  PAGODA_DEVICE void mainloop(const WorkReader& reader, Row (&rows)[2],
                              float (&o)[Products::columns / 2], const MakeRows& make_rows) {
    float s[BN / 2];
    float factors[2];
    typename Ops::QRing{storage_.q_ring[0], q_}.consumer_wait();  // load Q: its bytes have landed
    q_.step();
    const OwnTiles walk = OwnTiles::of(reader.work().walk);
    issue_qk(s);
    make_rows();
    arch::wgmma_wait_group<0>();
    bool has_output = false;
    // One copy of the softmax: that of the first tile would be fetched for it alone.
    PAGODA_NO_UNROLL
    for (int32_t i = walk.num_tiles - 1;; --i) {
      complete_s(s);
      if (has_output) let_second_multiply(v_stage());
      const bool rescales = compute_p(reader, i, walk, s, rows, factors) && has_output;
      pass_p(s, factors);
      if (rescales) rescale_output(o, factors);
      if (i == 0) break;
      issue_pv(o, has_output);
      has_output = true;
      issue_qk(s);
      arch::wgmma_wait_group<1>();
      release_v(o);
      arch::wgmma_wait_group<0>();
    }
    let_second_multiply(v_stage());
    if (Products::releases_q_early(params_)) Products::release_q(storage_);
    issue_pv(o, has_output);
    PAGODA_UNROLL
    for (Row& row : rows) {
      row.sums = softmax::Sums{row.online.sums().pivot, sum_of_quad(row.online.sums().sum)};
      row.max = row.online.max();
    }
    channel_.write_sums(rows);
    arch::wgmma_wait_group<0>();
    release_v(o);
  }

 private:
  // S = Q K', as one wgmma group, whose first products run while later parts are loaded.
  PAGODA_DEVICE void issue_qk(float (&s)[BN / 2]) {
    const arch::SmemDescriptor keys =
        arch::advance(k_descriptor_, Products::stage_bytes(k_.state.index));
    constexpr arch::OperandTile q_tile = Ops::q_tile, k_tile = Ops::k_tile;
    pipeline::for_each_part<tile.k_parts()>([&]<int part>() {
      k_.template consumer_wait<part>();  // load latent: the part is full
      arch::wgmma_fence();
      constexpr int steps = tile.panel_columns() / kKeysOfMma<T>;
      PAGODA_UNROLL
      for (int k = 0; k < steps; ++k) {
        const int column = part * tile.panel_columns() + kKeysOfMma<T> * k;
        arch::Wgmma<T, BN>::ss(s, arch::advance(q_descriptor_, tile_offset(q_tile, 0, column)),
                               arch::advance(keys, tile_offset(k_tile, 0, column)), part + k > 0);
      }
    });
    arch::wgmma_commit_group();
  }
  // Of a product that is complete.
  PAGODA_DEVICE void complete_s(float (&s)[BN / 2]) {
    arch::wgmma_pin(s);
    Products::template release<Products::parts_pv, 2 * Products::parts_pv>(k_, k_.state.index);
  }
  PAGODA_DEVICE void pass_p(const float (&s)[BN / 2], const float (&factors)[2]) {
    uint32_t p[steps_pv][4];
    convert_p<T, BN>(s, p);
    sync_warpgroup(0);  // the products of all four warps have read K, whose place P takes
    channel_.write(p, Products::p_at(storage_, k_.state.index), factors);
    sync_warpgroup(0);  // all four warps have stored P
    k_.step();
  }

  PAGODA_DEVICE void issue_pv(float (&o)[Products::columns / 2], bool accumulates) {
    Products::issue_pv(o, 0, p_descriptor_, v_descriptor_, v_stage(), accumulates);
  }
  // That of the tile before the one of k_, whose V is multiplied.
  [[nodiscard]] PAGODA_DEVICE uint32_t v_stage() const {
    static_assert(tile.k_stages == 2);
    return k_.state.index ^ 1U;
  }
  // Of the tile in `stage`.
  static PAGODA_DEVICE void let_second_multiply(uint32_t stage) {
    arch::named_barrier_arrive(kScoresBarrier + static_cast<int>(stage), 2 * kWarpgroup);
  }
  // Of a product that is complete.
  PAGODA_DEVICE void release_v(float (&o)[Products::columns / 2]) {
    arch::wgmma_pin(o);
    Products::template release<0, Products::parts_pv>(k_, v_stage());
    Products::template release<Products::p_part, Products::p_part + 1>(k_, v_stage());
  }

  // S of tile `index` becomes P. Returns whether O must be multiplied with `factors`, which are 1
  // where not.
  PAGODA_DEVICE bool compute_p(const WorkReader& reader, int32_t index, const OwnTiles& walk,
                               float (&s)[BN / 2], Row (&rows)[2], float (&factors)[2]) {
    const float scales[2] = {params_.score_map.scale_log2, params_.score_map.scale_log2};
    if (index >= walk.unmasked_end || index < walk.unmasked_begin) {
      const int32_t column = reader.work().walk.start_column + index * BN;
      apply_mask<Config>(params_, reader, rows, column, s);
    }
    return exp2_scores<BN>(s, rows, scales, factors);
  }

  const AttentionParams& params_;
  Storage<Config>& storage_;
  typename Ops::KRing& k_;
  typename Ops::QRing::State& q_;
  LatentChannel<Config>& channel_;
  arch::SmemDescriptor q_descriptor_, k_descriptor_, v_descriptor_, p_descriptor_;
};

}  // namespace pagoda::mha_sm90
