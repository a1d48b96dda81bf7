// Storage: the shared memory of a CTA.
#pragma once

#include <cstdint>

#include "arch/memory.hpp"
#include "kernels/mha_simt/config.hpp"

namespace pagoda::mha_simt {

// Rows are 4 floats longer than their elements: reads of 16 bytes by lanes with neighbouring rows
// have no bank conflicts.
inline constexpr int kPad = 4;
constexpr int padded(int elements) { return elements + kPad; }

template <class Config>
struct Storage {
  static constexpr TileConfig tile = Config::tile;
  static constexpr int kDepth = tile.depth_qk > tile.depth_vo ? tile.depth_qk : tile.depth_vo;
  static constexpr int kRowStride = padded(kDepth);
  static constexpr int kKStride = padded(TileConfig::kChunk), kVStride = padded(tile.depth_vo);
  static constexpr int kPStride = padded(TileConfig::BN);
  static constexpr int kKFloats = TileConfig::BN * kKStride, kVFloats = tile.v_keys() * kVStride;
  static constexpr int kKVFloats = kKFloats > kVFloats ? kKFloats : kVFloats;
  static constexpr int kStats = 3;  // pivot, sum, maximum

  // Q [BM][kRowStride], fp32; after the last KV tile O.
  arch::SharedArray<float, tile.BM * kRowStride> rows;
  // Of each warp: K [BN][kKStride], or V [v_keys()][kVStride], fp32.
  arch::SharedArray<float, TileConfig::kWarps * kKVFloats> kv;
  // Of each warp: P [BM][kPStride].
  arch::SharedArray<float, TileConfig::kWarps * tile.BM * kPStride> p;
  // Of each warp: the elements of K and V at which the rows of its keys start, [2][BN].
  arch::SharedArray<int64_t, TileConfig::kWarps * 2 * TileConfig::BN> offsets;
  arch::SharedArray<float, TileConfig::kWarps * tile.BM * kStats> stats;
  arch::SharedArray<uint32_t, 1> is_last;  // split_rows.hpp
};

}  // namespace pagoda::mha_simt
