// TileConfig: everything that an instance of the Hopper kernel is compiled for besides its element
// type: tile sizes, stages, registers, and the classes of rows, loads and scores.
#pragma once

#include "arch/layout/swizzle.hpp"
#include "arch/layout/types.hpp"
#include "core/target.hpp"
#include "kernels/common/kinds.hpp"
#include "pipeline/kv_tiling.hpp"

namespace pagoda::mha_sm90 {

inline constexpr int kWarpgroup = 128;  // threads
inline constexpr int kRows = 64;        // query rows of a consumer warpgroup: M of wgmma
inline constexpr int kWarpRows = 16;    // query rows of a warp: M of mma.sync

// What the query rows of a work tile are.
enum class RowKind : uint8_t {
  // Prefill: num_consumers * 64 tokens of one query head. TMA loads Q. CTAs draw row tiles
  // (GridWork).
  kTokens,
  // Decode: (token, query head of the KV head's group) pairs. Threads load Q. Stream-K
  // (StreamKWork).
  kPacked,
};

// kTma: load.hpp, consumer.hpp. kGather: gather.hpp, consumer.hpp; packed rows only. kTmaFp8:
// load.hpp, warp_consumer.hpp; up to 16 packed rows.
using kernels::LoadKind;
using kernels::ScoreClass;

struct TileConfig {
  int depth_qk = 128;  // padded head dims: multiples of the swizzle's width
  int depth_vo = 128;
  int BN = 128;            // keys of a KV tile
  int block_rows = kRows;  // rows of a consumer in a work tile
  int num_consumers = 2;   // warpgroups
  int k_stages = 2;
  int v_stages = 2;
  int q_stages = 1;  // of each consumer; 2: double-buffered Q. O is staged in the stage of its Q
  arch::Swizzle swizzle = arch::Swizzle::k128B;
  RowKind rows = RowKind::kTokens;
  LoadKind load = LoadKind::kTma;
  ScoreClass scores = ScoreClass::kPlain;
  // kGather: buffers for tiles of an fp8 cache that are in flight, before their conversion into the
  // stages; half of them for K, half for V.
  int raw_tiles = 0;
  bool is_ping_pong = true;  // consumers issue their products one after the other, in turn
  int ctas_per_sm = 1;
  // kTokens: the next work tile is drawn when load K has copies of so many KV tiles left, or has
  // begun a work tile of fewer.
  int draw_ahead = 3;
  int producer_registers = 56;
  int consumer_registers = 224;

  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int threads() const {
    return (num_consumers + 1) * kWarpgroup;
  }
  // With up to 256 threads an SM every thread has 255 registers; with more the roles share the
  // register file by setmaxnreg.
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr bool uses_setmaxnreg() const {
    return threads() * ctas_per_sm > 256;
  }
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int tile_rows() const { return num_consumers * kRows; }
  // Whether a consumer multiplies warp by warp, each warp all rows and a quarter of the keys.
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr bool uses_mma_sync() const {
    return load == LoadKind::kTmaFp8;
  }
  // uses_mma_sync: whether Q stays in registers. With wide heads O needs them.
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr bool keeps_q_in_registers() const {
    return depth_qk <= 128;
  }
  // Required by kernels/common/work_tile.hpp.
  static constexpr bool fuses_heads = false;
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr bool has_even_tiles() const {
    return load == LoadKind::kGather;
  }
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int num_blocks() const { return num_consumers; }
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr pipeline::KVTiling k_tiling() const {
    return {.BN = BN,
            .BK0 = depth_qk,
            .BK1 = BN,
            .padded_depth = depth_qk,
            .num_kv_stages = k_stages,
            .swizzle = swizzle};
  }
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr pipeline::KVTiling v_tiling() const {
    return {.BN = BN,
            .BK0 = depth_vo,
            .BK1 = BN,
            .padded_depth = depth_vo,
            .num_kv_stages = v_stages,
            .swizzle = swizzle};
  }
};

}  // namespace pagoda::mha_sm90
