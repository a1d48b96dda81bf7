// LatentChannel: what the first warpgroup of latent rows passes to the second: for each KV tile the
// factor of each row of O, together with P, which lies in the tile's stage of K
// (latent_products.hpp); after the last KV tile the sums of the rows.
//
//   full [2]    32 arrivals: eight lanes of each warp of the first, when all have stored its rows
//   empty [2]   4 arrivals: a warp of the second, when its lanes have read them
#pragma once

#include <cstdint>

#include "arch/fence.hpp"
#include "arch/ldmatrix.hpp"
#include "arch/warp.hpp"
#include "kernels/common/split_rows.hpp"
#include "kernels/mha_sm90/mask.hpp"
#include "kernels/mha_sm90/softmax.hpp"
#include "kernels/mha_sm90/storage.hpp"

namespace pagoda::mha_sm90 {

// One object in every thread of both warpgroups.
template <class Config>
class LatentChannel {
 public:
  using Ops = Operands<Config>;
  using Row = mha_sm90::Row<Config>;
  using Ring = typename LatentStorage<Ops>::Ring;
  static constexpr TileConfig tile = Config::tile;
  static constexpr int steps_pv = tile.BN / kKeysOfMma<typename Config::T>;

  // `writes`: in the first warpgroup.
  PAGODA_DEVICE LatentChannel(LatentStorage<Ops>& storage, bool writes)
      : storage_(storage),
        ring_(writes ? Ring::producer(storage.ring) : Ring::consumer(storage.ring)) {}

  // `p`: of each instruction of P V, as its A fragments, stored at `to`; `factors`: of the thread's
  // two rows.
  PAGODA_DEVICE void write(const uint32_t (&p)[steps_pv][4],
                           arch::SharedPtr<typename Ops::Product> to, const float (&factors)[2]) {
    ring_.producer_acquire();  // the second warpgroup has read the factors of two tiles before
    const int lane = arch::lane_idx(), first = 16 * (arch::thread_idx() % kWarpgroup / 32);
    // stmatrix x4: 16 rows and 16 columns; lane i gives the address of row i % 8 of matrix i / 8.
    PAGODA_UNROLL
    for (int k = 0; k < steps_pv; ++k) {
      const int column = 16 * k + 8 * (lane / 16);
      const auto offset = static_cast<uint32_t>(2 * ((first + lane % 16) * tile.BN + column));
      const uint32_t address = swizzle_address(to.address() + offset, tile.p_swizzle());
      arch::stmatrix<4>(to + static_cast<int32_t>((address - to.address()) / 2), p[k]);
    }
    PAGODA_UNROLL
    for (int r = 0; r < 2; ++r) {
      if (lane % 4 == 0) arch::store(row(r), factors[r]);
    }
    arch::fence_proxy_async_shared();  // orders this lane's part of P before wgmma and TMA
    publish();
  }
  PAGODA_DEVICE void write_sums(const Row (&rows)[2]) {
    ring_.producer_acquire();  // the second warpgroup has read the factors of two tiles before
    PAGODA_UNROLL
    for (int r = 0; r < 2; ++r) {
      if (arch::lane_idx() % 4 != 0) continue;
      arch::store(row(r).template as<kernels::FloatQuad>(),
                  kernels::FloatQuad{{rows[r].sums.pivot, rows[r].sums.sum, rows[r].max, 0}});
    }
    publish();
  }

  // Waits for the first warpgroup. Reads the factors of the thread's two rows, or the sums.
  PAGODA_DEVICE void read(float (&factors)[2]) {
    ring_.consumer_wait();  // the first warpgroup has stored P and the factors
    PAGODA_UNROLL
    for (int r = 0; r < 2; ++r) factors[r] = arch::load(row(r));
    release();
  }
  PAGODA_DEVICE void read_sums(Row (&rows)[2]) {
    ring_.consumer_wait();  // the first warpgroup has stored the sums
    PAGODA_UNROLL
    for (int r = 0; r < 2; ++r) {
      const auto sums = arch::load(row(r).template as<const kernels::FloatQuad>());
      rows[r].sums = softmax::Sums{sums.value[0], sums.value[1]};
      rows[r].max = sums.value[2];
    }
    release();
  }

 private:
  PAGODA_DEVICE void publish() {
    arch::syncwarp();  // every lane has stored its part
    // The lanes that have stored a row: compute-sanitizer follows no syncwarp.
    ring_.producer_mbar().arrive_if(arch::lane_idx() % 4 == 0 ? 1 : 0);
    ring_.step();
  }
  PAGODA_DEVICE void release() {
    arch::syncwarp();  // every lane has read its rows
    ring_.consumer_release(arch::elect_one());
  }
  // Of the two rows of a thread. A lane may call it alone.
  [[nodiscard]] PAGODA_DEVICE arch::SharedPtr<float> row(int r) const {
    const int row = 16 * (arch::thread_idx() % kWarpgroup / 32) + arch::lane_idx() / 4 + 8 * r;
    return storage_.rows.at(4 * (static_cast<int>(ring_.state.index) * kRows + row));
  }

  LatentStorage<Ops>& storage_;
  Ring ring_;
};

}  // namespace pagoda::mha_sm90
