// LatentValues: the mainloop of the second warpgroup of latent rows, O += P V of the second half of
// V's columns. P, the factors of O and at last the sums of the rows come from the first
// (latent_scores.hpp).
#pragma once

#include <cstdint>

#include "kernels/mha_sm90/named_barriers.hpp"
#include "kernels/mha_sm90/roles/latent_products.hpp"

namespace pagoda::mha_sm90 {

// One object in every thread of the warpgroup, for a work tile.
template <class Config>
class LatentValues {
 public:
  using Ops = Operands<Config>;
  using T = typename Config::T;
  using Row = mha_sm90::Row<Config>;
  using Products = LatentProducts<Config>;
  static constexpr TileConfig tile = Config::tile;

  PAGODA_DEVICE LatentValues(const AttentionParams& params, Storage<Config>& storage,
                             LatentState<Config>& state)
      : params_(params),
        storage_(storage),
        v_(state.k),
        channel_(state.channel),
        p_descriptor_(descriptor_at(Products::p_tile, Products::p_at(storage, 0).address())),
        v_descriptor_(descriptor_at(Ops::v_tile, storage.k.data().address())) {}

  // As LatentScores::mainloop().
  template <class MakeRows>
  PAGODA_DEVICE void mainloop(const WorkReader& reader, Row (&rows)[2],
                              float (&o)[Products::columns / 2], const MakeRows& make_rows) {
    if (Products::releases_q_early(params_)) Products::release_q(storage_);  // it reads none of Q
    make_rows();
    const int32_t num_tiles = reader.work().walk.num_tiles;
    PAGODA_NO_UNROLL
    for (int32_t i = 0; i < num_tiles; ++i) {
      float factors[2];
      channel_.read(factors);
      const bool has_output = i > 0;
      if (has_output && arch::any(factors[0] != 1 || factors[1] != 1)) rescale_output(o, factors);
      // It reads none of them.
      Products::template release<0, Products::parts_pv>(v_, v_.state.index);
      pipeline::for_each_part<Products::parts_pv>([&]<int part>() {
        v_.template consumer_wait<Products::parts_pv + part>();  // load latent: the part is full
      });
      // The first warpgroup has S of the next tile: its products come before these, which run under
      // its softmax.
      arch::named_barrier_sync(kScoresBarrier + static_cast<int>(v_.state.index), 2 * kWarpgroup);
      Products::issue_pv(o, 1, p_descriptor_, v_descriptor_, v_.state.index, has_output);
      arch::wgmma_wait_group<0>();  // O is complete
      arch::wgmma_pin(o);
      Products::template release<Products::parts_pv, Products::p_part + 1>(v_, v_.state.index);
      v_.step();
    }
    channel_.read_sums(rows);
  }

 private:
  const AttentionParams& params_;
  Storage<Config>& storage_;
  typename Ops::KRing& v_;
  LatentChannel<Config>& channel_;
  arch::SmemDescriptor p_descriptor_, v_descriptor_;
};

}  // namespace pagoda::mha_sm90
