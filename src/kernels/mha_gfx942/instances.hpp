// The compiled instances and their tiles. All tuning is here; README.md has the sizes that follow.
#pragma once

#include <array>

#include "kernels/common/kv_buffer/variants.hpp"
#include "pagoda/dtype.hpp"

namespace pagoda::mha_gfx942 {

using kernels::ScoreClass;
using kernels::kv_buffer::RowKind;
using kernels::kv_buffer::Shape;
using kernels::kv_buffer::Staging;
using kernels::kv_buffer::TileConfig;
using kernels::kv_buffer::Variant;

// In the order of the registry: a call gets the first shape that holds its head dims. A line is an
// instance: a code object with a kernel for each of kVariants. The build reads the names
// (cmake/PagodaKernelFamilies.cmake).
// clang-format off
inline constexpr Shape kShapes[] = {
    {"gfx942.d64.bf16", DType::kBF16, 64, 64},
    {"gfx942.d128.bf16", DType::kBF16, 128, 128},
    {"gfx942.d192x128.bf16", DType::kBF16, 192, 128},
    {"gfx942.d256.bf16", DType::kBF16, 256, 256},
    {"gfx942.d576x512.bf16", DType::kBF16, 576, 512},
    {"gfx942.d64.f16", DType::kF16, 64, 64},
    {"gfx942.d128.f16", DType::kF16, 128, 128},
    {"gfx942.d192x128.f16", DType::kF16, 192, 128},
    {"gfx942.d256.f16", DType::kF16, 256, 256},
    {"gfx942.d576x512.f16", DType::kF16, 576, 512},
};
// clang-format on

inline constexpr std::array kVariants = {
    Variant{RowKind::kPrefill, Staging::kVectors, ScoreClass::kPlain},
    Variant{RowKind::kPrefill, Staging::kVectors, ScoreClass::kGeneral},
    Variant{RowKind::kPrefill, Staging::kRegisters, ScoreClass::kGeneral},
    Variant{RowKind::kTokenGeneration, Staging::kVectors, ScoreClass::kPlain},
    Variant{RowKind::kTokenGeneration, Staging::kVectors, ScoreClass::kGeneral},
    Variant{RowKind::kTokenGeneration, Staging::kRegisters, ScoreClass::kGeneral},
};

// Token generation, 16x16x16: 16 rows, four waves that share the keys of S and the columns of O. Up
// to depth 128 two CTAs have room in 64 KB.
constexpr TileConfig token_tile(int depth_qk, int depth_vo) {
  TileConfig tile;
  tile.mma = {16, 16, 16};
  tile.BM = tile.block_rows = 16;
  tile.warps_m = 1;
  tile.warps_n = 4;
  tile.BN = 64;
  tile.k_BK = 32;
  tile.v_BK = depth_vo == 512 ? 16 : 32;
  tile.num_stages = 2;
  tile.ctas_per_sm = depth_qk <= 128 ? 2 : 1;
  return tile;
}

// Prefill, 32x32x8: four waves, each with 32 rows and all keys of a KV tile. The documented steps
// of 32, two register stages. Two CTAs leave a wave 256 registers, too few for score mods or for O
// of depth 256.
constexpr TileConfig prefill_tile(int depth_vo, ScoreClass scores) {
  TileConfig tile;
  tile.mma = {32, 32, 8};
  tile.BM = tile.block_rows = 128;
  const bool has_room = depth_vo <= 128 && scores == ScoreClass::kPlain;
  tile.BN = has_room ? 64 : 32;
  tile.k_BK = 32;
  tile.v_BK = tile.BN / 2;
  tile.num_stages = 2;
  tile.transposes_v = true;
  tile.keeps_q_in_registers = tile.reads_q_directly = true;
  tile.o_parts = depth_vo / 64;
  tile.ctas_per_sm = has_room ? 2 : 1;
  return tile;
}

constexpr TileConfig tile_of(int depth_qk, int depth_vo, const Variant& variant) {
  const bool is_token_tile =
      variant.rows == RowKind::kTokenGeneration || !kernels::kv_buffer::has_prefill_tile(depth_vo);
  TileConfig tile =
      is_token_tile ? token_tile(depth_qk, depth_vo) : prefill_tile(depth_vo, variant.scores);
  tile.warp_size = 64;
  tile.k_tiles = tile.v_tiles = 2;
  tile.depth_qk = depth_qk;
  tile.depth_vo = depth_vo;
  tile.staging = variant.staging;
  tile.scores = variant.scores;
  return tile;
}

struct Chip {
  static constexpr auto& kShapes = mha_gfx942::kShapes;
  static constexpr auto& kVariants = mha_gfx942::kVariants;
  static constexpr auto tile_of = mha_gfx942::tile_of;
};

}  // namespace pagoda::mha_gfx942
