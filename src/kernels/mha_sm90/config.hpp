// What is compiled into an instance of the Hopper kernel, and nothing else: element type, tile,
// stages, registers, and the two classes (how query heads become rows, what happens to scores).
#pragma once

#include "arch/layout/swizzle.hpp"
#include "arch/layout/types.hpp"
#include "core/target.hpp"
#include "kernels/common/kinds.hpp"
#include "pipeline/kv_tiling.hpp"

namespace pagoda::mha_sm90 {

inline constexpr int kWarpgroup = 128;  // threads
inline constexpr int kRows = 64;        // query rows of a consumer warpgroup: M of wgmma
inline constexpr int kWarpRows = 16;    // .. of a warp that multiplies alone: M of mma.sync

// How tiles of query rows are made and handed out.
enum class RowKind : uint8_t {
  // Prefill: a tile is num_consumers * 64 tokens of one query head; Q by TMA; tiles by TileGrid.
  kTokens,
  // Decode: a row is a (token, query head of the KV head's group) pair; Q by the consumer; every CTA
  // takes an equal share of all key tiles (key_shares.hpp).
  kPacked,
};

// kTma: load.hpp; kGather: gather.hpp, packed rows only; kTmaFp8: load.hpp, the consumers widen elements
// in registers, where a warp has all rows and some of the keys (attend_warp.hpp): up to 16 packed rows.
using kernels::LoadKind;
using kernels::ScoreClass;

struct TileConfig {
  int depth_qk = 128;  // padded head dims: multiples of the swizzle's width
  int depth_vo = 128;
  int BN = 128;            // keys of a tile
  int block_rows = kRows;  // rows of a consumer; packed: of a unit of work
  int num_consumers = 2;
  int k_stages = 2;
  int v_stages = 2;
  int q_stages = 1;  // places of a consumer's Q, and of the O that takes it
  arch::Swizzle swizzle = arch::Swizzle::k128B;
  RowKind rows = RowKind::kTokens;
  LoadKind load = LoadKind::kTma;
  ScoreClass scores = ScoreClass::kPlain;
  // Gather: tiles of an fp8 cache on their way, beside the stages; even.
  int raw_tiles = 0;
  bool has_turns = true;  // consumer warpgroups issue their products in turns (ping-pong)
  int ctas_per_sm = 1;
  int producer_registers = 56;
  int consumer_registers = 224;

  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int threads() const {
    return (num_consumers + 1) * kWarpgroup;
  }
  // Where the register file has not the most that a thread can use for all, roles share by setmaxnreg.
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr bool has_budgets() const {
    return threads() * ctas_per_sm > 256;
  }
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int tile_rows() const { return num_consumers * kRows; }
  // Whether consumers multiply warp by warp (mma.sync), each its own keys of the tile.
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr bool has_warp_products() const {
    return load == LoadKind::kTmaFp8;
  }
  // .. and keep Q in registers; wide heads need them for O.
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr bool keeps_q() const { return depth_qk <= 128; }
  // What the schedule asks (kernels/common/work.hpp).
  static constexpr bool fuses_heads = false;
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
