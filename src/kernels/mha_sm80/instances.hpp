// The compiled instances and their tiles. All tuning is here; README.md has the sizes that follow.
#pragma once

#include <array>

#include "kernels/common/kv_buffer/variants.hpp"
#include "pagoda/dtype.hpp"

namespace pagoda::mha_sm80 {

using kernels::ScoreClass;
using kernels::kv_buffer::RowKind;
using kernels::kv_buffer::Shape;
using kernels::kv_buffer::Staging;
using kernels::kv_buffer::TileConfig;
using kernels::kv_buffer::Variant;

// In the order of the registry: a call gets the first shape that holds its head dims. A line is an
// instance: a translation unit with a kernel for each of kVariants. The build reads the names
// (cmake/PagodaKernelFamilies.cmake).
// clang-format off
inline constexpr Shape kShapes[] = {
    {"sm80.d64.bf16", DType::kBF16, 64, 64},
    {"sm80.d128.bf16", DType::kBF16, 128, 128},
    {"sm80.d192x128.bf16", DType::kBF16, 192, 128},
    {"sm80.d256.bf16", DType::kBF16, 256, 256},
    {"sm80.d576x512.bf16", DType::kBF16, 576, 512},
    {"sm80.d64.f16", DType::kF16, 64, 64},
    {"sm80.d128.f16", DType::kF16, 128, 128},
    {"sm80.d192x128.f16", DType::kF16, 192, 128},
    {"sm80.d256.f16", DType::kF16, 256, 256},
    {"sm80.d576x512.f16", DType::kF16, 576, 512},
};
// clang-format on

// Token generation: 16 rows, four warps that share the keys of S and the columns of O.
constexpr TileConfig token_tile(int depth_qk, int depth_vo, Staging staging, ScoreClass scores) {
  TileConfig tile;
  tile.BM = tile.block_rows = 16;
  tile.warps_m = 1;
  tile.warps_n = 4;
  tile.BN = 64;
  if (depth_qk == 64 && staging == Staging::kAsync) {
    if (scores == ScoreClass::kPlain) {
      tile.ctas_per_sm = 4;
    } else {  // masks and biases need registers
      tile.BN = 128;
    }
  }
  if (staging == Staging::kRegisters) {
    tile.k_BK = 32;
    tile.v_BK = depth_vo == 512 ? 16 : 32;
    tile.k_tiles = tile.v_tiles = 2;
    tile.num_stages = depth_vo == 512 ? 1 : 2;
  } else if (depth_qk <= 128) {  // whole tiles of 8 or 16 KB, three of them in flight
    tile.k_BK = depth_qk;
    tile.v_BK = tile.BN;
    tile.k_tiles = tile.v_tiles = 2;
    tile.num_stages = 3;
  } else if (depth_qk == 192) {
    tile.k_BK = 64;
    tile.v_BK = tile.BN;
    tile.k_tiles = 4;
    tile.v_tiles = 1;
    tile.num_stages = 3;
  } else {  // steps of 8 KB of K and 16 KB of V
    tile.k_BK = 64;
    tile.v_BK = depth_vo == 512 ? 16 : 32;
    tile.k_tiles = tile.v_tiles = 3;
    tile.num_stages = 2;
  }
  return tile;
}

// Prefill: four warps, each with its own rows and all keys of a KV tile. Loads are whole tiles: K
// of the next KV tile during P V, V during Q K'.
constexpr TileConfig prefill_tile(int depth_qk, int depth_vo, Staging staging, ScoreClass scores) {
  TileConfig tile;
  const bool is_plain = scores == ScoreClass::kPlain;
  // Plain scores of depth 64: as many keys as registers hold. The more, the fewer barriers.
  tile.BN = depth_qk == 64 && is_plain ? 128 : 64;
  // 32 rows a warp: a fragment of K or V serves two products. Where O, score mods or register
  // stages leave no room for that: 16.
  const bool has_room = depth_vo == 64 || (depth_qk == 128 && is_plain);
  tile.BM = tile.block_rows = has_room && staging == Staging::kAsync ? 128 : 64;
  if (staging == Staging::kRegisters) {
    if (depth_vo == 256) tile.BN = 32;
    tile.k_BK = 32;
    tile.v_BK = depth_vo == 256 ? 16 : 32;
    tile.k_tiles = tile.v_tiles = 2;
  } else {
    tile.group_size = 1;
    tile.k_BK = depth_qk;
    tile.v_BK = tile.BN;
    tile.keeps_q_in_registers = depth_qk == 64 && !is_plain;
  }
  return tile;
}

// Calls that need KVBufferImpl get general scores: fewer kernels to compile.
inline constexpr std::array kVariants = {
    Variant{RowKind::kPrefill, Staging::kAsync, ScoreClass::kPlain},
    Variant{RowKind::kPrefill, Staging::kAsync, ScoreClass::kGeneral},
    Variant{RowKind::kPrefill, Staging::kRegisters, ScoreClass::kGeneral},
    Variant{RowKind::kTokenGeneration, Staging::kAsync, ScoreClass::kPlain},
    Variant{RowKind::kTokenGeneration, Staging::kAsync, ScoreClass::kGeneral},
    Variant{RowKind::kTokenGeneration, Staging::kRegisters, ScoreClass::kGeneral},
    Variant{RowKind::kDecode, Staging::kAsync, ScoreClass::kPlain},
    Variant{RowKind::kDecode, Staging::kAsyncNarrow, ScoreClass::kPlain},
};

// Kernels for functors are compiled of these variants alone.
constexpr bool is_for_functors(const Shape& /*shape*/, size_t variant) {
  return kVariants[variant].scores == ScoreClass::kPlain &&
         kVariants[variant].rows != RowKind::kDecode;
}

constexpr TileConfig tile_of(int depth_qk, int depth_vo, const Variant& variant) {
  if (variant.rows == RowKind::kDecode) {
    return kernels::kv_buffer::decode_tile(depth_qk, false, false, 1, variant.staging);
  }
  const bool is_token_tile =
      variant.rows != RowKind::kPrefill || !kernels::kv_buffer::has_prefill_tile(depth_vo);
  TileConfig tile = is_token_tile
                        ? token_tile(depth_qk, depth_vo, variant.staging, variant.scores)
                        : prefill_tile(depth_qk, depth_vo, variant.staging, variant.scores);
  tile.mma = {16, 8, 16};
  tile.depth_qk = depth_qk;
  tile.depth_vo = depth_vo;
  tile.staging = variant.staging;
  tile.scores = variant.scores;
  return tile;
}

struct Chip {
  static constexpr auto& kShapes = mha_sm80::kShapes;
  static constexpr auto& kVariants = mha_sm80::kVariants;
  static constexpr auto tile_of = mha_sm80::tile_of;
};

}  // namespace pagoda::mha_sm80
