// transpose_v: the role that transposes V of 8-bit elements, a warpgroup. TMA loads a tile [keys,
// columns]; wgmma reads V of 8-bit elements K-major only, [columns, keys].
//
// ldmatrix.trans moves pairs of bytes, two columns of a key: lane 4 g + t gets columns 2 g, 2 g + 1
// of keys 2 t, 2 t + 1. Of two blocks of 8 keys, a byte permutation then makes four neighbouring
// keys of one column, which is what the lane holds for stmatrix. Within each 16 keys the result has
// the order
//
//   stored position  4 t + 0   4 t + 1   4 t + 2   4 t + 3        t = 0 .. 3
//   key              2 t       2 t + 1   8 + 2 t   8 + 2 t + 1
//
// which is the order in which a lane's scores become the 8-bit A operand of P V (convert_p): no
// value moves to another lane.
//
// Each warp transposes every fourth 16 columns of a tile by itself, in blocks of 32 keys. An 8 x 8
// matrix has even columns in its upper half and odd ones in its lower half, or the other way round:
// so its eight stores, of 16 bytes, are in different banks.
#pragma once

#include <cstdint>

#include "arch/fault.hpp"
#include "arch/fence.hpp"
#include "arch/ldmatrix.hpp"
#include "arch/math.hpp"
#include "arch/warp.hpp"
#include "kernels/mha_sm90/schedule.hpp"
#include "kernels/mha_sm90/storage.hpp"

namespace pagoda::mha_sm90 {

// A warp's part of the tiles, without synchronisation.
template <class Config>
class TileTransposition {
 public:
  using Ops = Operands<Config>;
  using T = typename Config::T;
  static constexpr TileConfig tile = Config::tile;
  static constexpr int kColumns = 16, kKeys = 32;  // of a block
  static constexpr int warps = 4;
  static_assert(tile.depth_vo % (kColumns * warps) == 0 && tile.BN % kKeys == 0);
  static_assert(tile.BN <= 128, "a line of the swizzle holds all keys");

  PAGODA_DEVICE TileTransposition() {
    const int lane = arch::lane_idx(), column = kColumns * (arch::warp_idx() % warps);
    // ldmatrix: a lane addresses 16 columns of a key.
    loaded_ = swizzle_address(Ops::panel_offset(tile.BN, lane, column), tile.swizzle);
    // stmatrix: 16 keys of a column. Lane 8 m + i has row i of matrix m; matrices 0 and 1 have the
    // first 16 keys, 2 and 3 the others.
    const int i = lane % 8, odd = i / 4 ^ lane / 8 % 2;
    const int row = column + 2 * i + odd, key = 16 * (lane / 16);
    stored_ =
        swizzle_address(static_cast<uint32_t>(row * tile.BN + key), tile.transposed_swizzle());
  }

  // `from`, `to`: stages of V as TMA has loaded it and of transposed V. Keys from `num_keys` on
  // become zeros: P is 0 there, but the rest of a page may be NaN, and 0 * NaN is NaN.
  PAGODA_DEVICE void run(arch::SharedPtr<T> from, arch::SharedPtr<T> to, int num_keys) const {
    num_keys = arch::mutable_value("V past the last key kept", num_keys, tile.BN);
    if (num_keys >= tile.BN) {
      transpose<false>(from, to, num_keys);
    } else {
      transpose<true>(from, to, num_keys);
    }
  }

 private:
  template <bool is_partial>
  PAGODA_DEVICE void transpose(arch::SharedPtr<T> from, arch::SharedPtr<T> to, int num_keys) const {
    constexpr int blocks = tile.BN / kKeys;
    const int lane = arch::lane_idx();
    // Byte permutations: the even and the odd one of a lane's two columns.
    const bool is_upper = lane < 16;
    const uint32_t first = is_upper ? 0x6420U : 0x7531U, second = is_upper ? 0x7531U : 0x6420U;
    PAGODA_UNROLL
    for (int c = 0; c < tile.depth_vo / (kColumns * warps); ++c) {
      uint32_t pairs[blocks][4];
      PAGODA_UNROLL
      for (int b = 0; b < blocks; ++b) {
        arch::ldmatrix_transposed<4>(pairs[b], from + loaded_offset(c, b));
      }
      PAGODA_UNROLL
      for (int b = 0; b < blocks; ++b) {
        if constexpr (is_partial) zero_keys(pairs[b], num_keys - kKeys * b - 2 * (lane % 4));
        const uint32_t quads[4] = {arch::byte_permute(pairs[b][0], pairs[b][1], first),
                                   arch::byte_permute(pairs[b][0], pairs[b][1], second),
                                   arch::byte_permute(pairs[b][2], pairs[b][3], first),
                                   arch::byte_permute(pairs[b][2], pairs[b][3], second)};
        const int block = arch::mutable_value("V transposed to the tile's first keys", b, 0);
        arch::stmatrix<4>(to + stored_offset(c, block), quads);
      }
    }
  }

  // Keeps the pairs of the first keys of a block, in units of this lane: register i has keys
  // 8 i and 8 i + 1, of which `left` - 8 i exist.
  static PAGODA_DEVICE void zero_keys(uint32_t (&pairs)[4], int left) {
    PAGODA_UNROLL
    for (int i = 0; i < 4; ++i) {
      if (left - 8 * i < 2) pairs[i] = left - 8 * i < 1 ? 0 : pairs[i] & 0xffffU;
    }
  }

  // Of block `b` of the warp's columns `c`: the swizzle of the lane's address in the first block
  // serves all, because the bits that it reads are the same.
  [[nodiscard]] PAGODA_DEVICE int32_t loaded_offset(int c, int b) const {
    const int column = kColumns * warps * c;
    return static_cast<int32_t>(loaded_ ^ static_cast<uint32_t>(column % Ops::chunk)) +
           (column / Ops::chunk * tile.BN + kKeys * b) * Ops::chunk;
  }
  [[nodiscard]] PAGODA_DEVICE int32_t stored_offset(int c, int b) const {
    return static_cast<int32_t>(stored_ ^ static_cast<uint32_t>(kKeys * b)) +
           kColumns * warps * c * tile.BN;
  }

  uint32_t loaded_, stored_;  // offsets in bytes of this lane's rows of block 0 of columns 0
};

// All threads of the transposing warpgroup.
template <class Config>
PAGODA_DEVICE void transpose_v(Storage<Config>& storage) {
  using Ops = Operands<Config>;
  auto loaded = Ops::LoadedVRing::consumer(storage.conversion.v_ring);
  auto ring = Ops::VRing::producer(storage.v_ring);
  WorkReader reader(storage.work);
  const TileTransposition<Config> transposition;
  for (; reader.next(); reader.release()) {
    const mask::KVTileRange walk = reader.work().walk;
    const int32_t num_keys = reader.work().rows.seqlen_kv;
    for (int32_t tile = walk.num_tiles; tile-- > 0;) {
      const int32_t column = kernels::first_key_of<Config>(walk, tile);
      const auto stage = [](uint32_t index) {
        return static_cast<int32_t>(arch::mutable_stage("V stages share memory", index)) *
               Ops::v_elements;
      };
      loaded.consumer_wait();   // load V: the bytes of the tile have landed
      ring.producer_acquire();  // every consumer warp has released the stage
      transposition.run(storage.conversion.v.at(stage(loaded.state.index)),
                        storage.v.at(stage(ring.state.index)), num_keys - column);
      arch::fence_proxy_async_shared();  // orders this lane's stores of V before wgmma reads them
      // All lanes have loaded their part of the tile, stored it and executed the fence.
      arch::syncwarp();
      const int32_t elect = arch::elect_one();
      ring.producer_mbar().arrive_if(elect);
      ring.step();
      loaded.consumer_release(elect);
    }
  }
}

}  // namespace pagoda::mha_sm90
