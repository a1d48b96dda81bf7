// KVBufferConfig: the tile sizes of a KVBuffer, for K and for V.
#pragma once

#include "core/target.hpp"

namespace pagoda::operand {

// A block tile [btile_dim0, btile_dim1] is what one load brings; a warp tile is the part of it that
// one warp multiplies. Rows are keys, columns elements of the head.
struct KVBufferConfig {
  int wsize = 0;  // columns of the product that a warp computes: keys (K), elements of O (V)
  int wtile_dim0 = 0, wtile_dim1 = 0;
  int btile_dim0 = 0, btile_dim1 = 0;
  int iterator_axis = 0;  // along which block tiles follow each other: 0 keys, 1 elements

  // S = Q K': a step takes BK elements of all BN keys.
  static constexpr KVBufferConfig k(int BN, int WN, int BK) {
    return {.wsize = WN,
            .wtile_dim0 = WN,
            .wtile_dim1 = BK,
            .btile_dim0 = BN,
            .btile_dim1 = BK,
            .iterator_axis = 1};
  }
  // O = P V: a step takes all elements of BK keys. The warps that share the keys of a tile (BN /
  // WN) share the columns of O.
  static constexpr KVBufferConfig v(int BN, int WN, int BK, int depth) {
    const int wsize = depth / (BN / WN);
    return {.wsize = wsize,
            .wtile_dim0 = BK,
            .wtile_dim1 = wsize,
            .btile_dim0 = BK,
            .btile_dim1 = depth,
            .iterator_axis = 0};
  }
};

}  // namespace pagoda::operand
