// TileConfig: what an instance of the SIMT kernel is compiled for. Element types, strides and head
// dims up to the padded ones are run-time values.
#pragma once

#include "core/target.hpp"
#include "kernels/common/kinds.hpp"

namespace pagoda::mha_simt {

struct TileConfig {
  int depth_qk = 128, depth_vo = 128;  // the largest head dims
  int BM = 16;                         // rows of a work tile; every warp has all of them
  int warp_size = 32;                  // AMD: 64

  static constexpr int kWarps = 4;      // each with its own KV tiles
  static constexpr int BN = 32;         // keys of a warp's KV tile
  static constexpr int kChunk = 64;     // elements of its rows of K in shared memory at a time
  static constexpr int kRowLanes = 16;  // lanes that share rows

  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int threads() const { return kWarps * warp_size; }
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int rows_per_lane() const {
    return BM * kRowLanes / warp_size;
  }
  // Keys of V in shared memory at a time, with all their elements: as many as fit in K's place.
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int v_keys() const {
    return depth_vo <= 128 ? 16 : depth_vo <= 256 ? 8 : 4;
  }
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int chunks_vo() const { return depth_vo / kChunk; }

  // Required by kernels/common/work_tile.hpp. Rows of K and V are looked up one by one; a row tile
  // is packed (token, query head) pairs of a KV head.
  static constexpr kernels::LoadKind load = kernels::LoadKind::kGather;
  static constexpr kernels::ScoreClass scores = kernels::ScoreClass::kGeneral;
  static constexpr bool fuses_heads = true;
};

}  // namespace pagoda::mha_simt
