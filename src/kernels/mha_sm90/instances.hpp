// The compiled instances and their tiles. All tuning is here: every number was measured on an H200
// (README.md).
#pragma once

#include <cstddef>

#include "kernels/mha_sm90/config.hpp"
#include "pagoda/dtype.hpp"

namespace pagoda::mha_sm90 {

// What an instance is compiled for: element type and padded head dims.
struct Shape {
  const char* name;
  DType dtype;
  int depth_qk;
  int depth_vo;
};

// In the order of the registry: a call gets the first shape that holds its head dims. A line is an
// instance: a translation unit with a kernel for each of kVariants. The build reads the names
// (cmake/PagodaKernelFamilies.cmake).
// clang-format off
inline constexpr Shape kShapes[] = {
    {"sm90.d64.bf16", DType::kBF16, 64, 64},
    {"sm90.d96.bf16", DType::kBF16, 96, 96},
    {"sm90.d128.bf16", DType::kBF16, 128, 128},
    {"sm90.d192x128.bf16", DType::kBF16, 192, 128},
    {"sm90.d256.bf16", DType::kBF16, 256, 256},
    {"sm90.d576x512.bf16", DType::kBF16, 576, 512},
    {"sm90.d64.f16", DType::kF16, 64, 64},
    {"sm90.d96.f16", DType::kF16, 96, 96},
    {"sm90.d128.f16", DType::kF16, 128, 128},
    {"sm90.d192x128.f16", DType::kF16, 192, 128},
    {"sm90.d256.f16", DType::kF16, 256, 256},
    {"sm90.d576x512.f16", DType::kF16, 576, 512},
    {"sm90.d64.f8e4m3", DType::kF8E4M3, 64, 64},
    {"sm90.d128.f8e4m3", DType::kF8E4M3, 128, 128},
    {"sm90.d256.f8e4m3", DType::kF8E4M3, 256, 256},
};
// clang-format on

// The kernels of each shape; a launch runs one of them.
struct Variant {
  RowKind rows;
  LoadKind load;
  ScoreClass scores;

  bool operator==(const Variant&) const = default;
};
inline constexpr Variant kVariants[] = {
    {RowKind::kTokens, LoadKind::kTma, ScoreClass::kPlain},
    {RowKind::kTokens, LoadKind::kTma, ScoreClass::kGeneral},
    {RowKind::kPacked, LoadKind::kTma, ScoreClass::kPlain},
    {RowKind::kPacked, LoadKind::kTma, ScoreClass::kGeneral},
    {RowKind::kPacked, LoadKind::kGather, ScoreClass::kPlain},
    {RowKind::kPacked, LoadKind::kGather, ScoreClass::kGeneral},
    {RowKind::kPacked, LoadKind::kTmaFp8, ScoreClass::kPlain},
    {RowKind::kPacked, LoadKind::kTmaFp8, ScoreClass::kGeneral},
    {RowKind::kTokens, LoadKind::kTmaWiden, ScoreClass::kPlain},
    {RowKind::kTokens, LoadKind::kTmaWiden, ScoreClass::kGeneral},
    {RowKind::kTallTokens, LoadKind::kTma, ScoreClass::kPlain},
    {RowKind::kShortTokens, LoadKind::kTma, ScoreClass::kPlain},
    {RowKind::kSingleTokens, LoadKind::kTma, ScoreClass::kPlain},
    {RowKind::kGroupTokens, LoadKind::kTma, ScoreClass::kPlain},
    {RowKind::kStreamKTokens, LoadKind::kTma, ScoreClass::kPlain},
    {RowKind::kMixedTokens, LoadKind::kTma, ScoreClass::kPlain},
    {RowKind::kTokens, LoadKind::kTma, ScoreClass::kCapped},
};

// Latent attention: packed rows alone, by TMA, of plain scores (latent_launch.hpp).
PAGODA_HOST_DEVICE constexpr bool is_latent(int depth_qk) { return depth_qk == 576; }
constexpr bool is_latent(const Shape& shape) { return is_latent(shape.depth_qk); }

// Whether tokens of 16-bit queries over an fp8 cache have a kernel. General scores with O of 256
// columns spill.
constexpr bool has_widened(const Shape& shape, ScoreClass scores) {
  return shape.dtype != DType::kF8E4M3 && (scores == ScoreClass::kPlain || shape.depth_vo < 256);
}
// Whether prompts of many row tiles have tall ones. Those of kTokens are as tall for 16-bit d64.
constexpr bool has_tall_tokens(const Shape& shape) {
  if (shape.dtype == DType::kF8E4M3) return shape.depth_qk == 64;
  return shape.depth_vo == shape.depth_qk && (shape.depth_qk == 96 || shape.depth_qk == 128);
}
// Whether prompts of few keys have short row tiles.
constexpr bool has_short_tokens(const Shape& shape) {
  return shape.dtype != DType::kF8E4M3 && shape.depth_vo == shape.depth_qk &&
         (shape.depth_qk == 64 || shape.depth_qk == 128);
}
// Whether prompts of few row tiles have row tiles of one consumer.
constexpr bool has_single_tokens(const Shape& shape) {
  return has_short_tokens(shape) || (shape.depth_qk == 256 && shape.dtype != DType::kF8E4M3);
}
// Whether row tiles of several heads have a kernel of their own.
constexpr bool has_group_tokens(const Shape& shape) { return shape.dtype == DType::kF8E4M3; }
// Whether all CTAs may have equal shares of the row tiles of kTokens.
constexpr bool has_stream_k_tokens(const Shape& shape) { return has_single_tokens(shape); }
// Whether decoding beside prompts has a kernel.
constexpr bool has_mixed_tokens(const Shape& shape) {
  return shape.dtype != DType::kF8E4M3 && !is_latent(shape);
}
// Shapes of e4m3 queries have K and V by TMA only, and their soft caps are general scores.
constexpr bool has_kernel(const Shape& shape, size_t variant) {
  const Variant& wanted = kVariants[variant];
  if (is_latent(shape)) {
    return wanted == Variant{RowKind::kPacked, LoadKind::kTma, ScoreClass::kPlain};
  }
  if (wanted.rows == RowKind::kStreamKTokens) return has_stream_k_tokens(shape);
  if (wanted.rows == RowKind::kMixedTokens) return has_mixed_tokens(shape);
  if (wanted.rows == RowKind::kSingleTokens) return has_single_tokens(shape);
  if (wanted.rows == RowKind::kGroupTokens) return has_group_tokens(shape);
  if (wanted.rows == RowKind::kShortTokens) return has_short_tokens(shape);
  if (wanted.rows == RowKind::kTallTokens) return has_tall_tokens(shape);
  if (wanted.load == LoadKind::kTmaWiden) return has_widened(shape, wanted.scores);
  return shape.dtype != DType::kF8E4M3 ||
         (wanted.load == LoadKind::kTma && wanted.scores != ScoreClass::kCapped);
}
// Kernels for functors are compiled of these variants alone. Those with kTmaWiden would spill, and
// those of tall and short row tiles; those of one consumer, of e4m3 groups, of equal shares and
// beside decoding are not worth their compilation.
constexpr bool is_for_functors(const Shape& shape, size_t variant) {
  const Variant& of = kVariants[variant];
  return has_kernel(shape, variant) && !is_latent(shape) && of.scores == ScoreClass::kPlain &&
         of.load != LoadKind::kTmaWiden &&
         (of.rows == RowKind::kTokens || of.rows == RowKind::kPacked);
}

PAGODA_HOST_DEVICE constexpr TileConfig tokens_tile(int depth_qk, int depth_vo) {
  TileConfig tile;
  tile.depth_qk = depth_qk;
  tile.depth_vo = depth_vo;
  if (depth_qk == 64) {  // bound by exp2: three consumers overlap more of it with products
    tile.num_consumers = 3;
    tile.overlaps_pv = false;  // else 128 keys need more than 152 registers
    tile.producer_registers = 56;
    tile.consumer_registers = 152;
    tile.k_stages = tile.v_stages = 4;
  }
  if (depth_qk <= 128) tile.q_stages = 2;
  if (depth_qk == 256) tile.BN = 64;  // two stages of K and V fill the shared memory
  return tile;
}

// The products of two consumers run under the softmax of the third.
PAGODA_HOST_DEVICE constexpr TileConfig tall_tile(int depth_qk, int depth_vo) {
  TileConfig tile = tokens_tile(depth_qk, depth_vo);
  tile.num_consumers = 3;
  tile.overlaps_pv = false;
  tile.producer_registers = 32;
  tile.consumer_registers = 160;
  return tile;
}

PAGODA_HOST_DEVICE constexpr TileConfig stream_k_tile(int depth_qk, int depth_vo) {
  TileConfig tile = tokens_tile(depth_qk, depth_vo);
  tile.has_equal_shares = true;
  return tile;
}

// Tall row tiles have too few registers to schedule both.
PAGODA_HOST_DEVICE constexpr TileConfig mixed_tile(int depth_qk, int depth_vo) {
  TileConfig tile = tokens_tile(depth_qk, depth_vo);
  tile.decodes = true;
  return tile;
}

// Two CTAs a multiprocessor: one begins or ends a work tile while the other multiplies. Where row
// tiles see few keys that is more than what the smaller tiles of keys cost.
PAGODA_HOST_DEVICE constexpr TileConfig short_tile(int depth_qk, int depth_vo) {
  TileConfig tile = tokens_tile(depth_qk, depth_vo);
  tile.num_consumers -= 1;
  tile.ctas_per_sm = 2;
  tile.BN = 64;
  tile.is_ping_pong = tile.num_consumers > 1;
  tile.producer_registers = depth_qk == 64 ? 32 : 64;
  tile.consumer_registers = depth_qk == 64 ? 104 : 192;
  return tile;
}

// Half of the rows: more multiprocessors have one, and a KV tile of it takes three quarters of the
// time, or less with O of 256 columns.
PAGODA_HOST_DEVICE constexpr TileConfig single_tile(int depth_qk, int depth_vo) {
  TileConfig tile = tokens_tile(depth_qk, depth_vo);
  tile.num_consumers = 1;
  tile.is_ping_pong = false;
  tile.overlaps_pv = true;
  if (depth_qk == 64) {
    tile.ctas_per_sm = 2;
    tile.k_stages = tile.v_stages = 3;
    tile.producer_registers = 64;
    tile.consumer_registers = 192;
  }
  if (depth_qk == 256) {
    tile.BN = 64;
    tile.k_stages = tile.v_stages = 3;
  }
  return tile;
}

PAGODA_HOST_DEVICE constexpr TileConfig packed_tile(int depth_qk, int depth_vo) {
  TileConfig tile;
  tile.rows = RowKind::kPacked;
  tile.depth_qk = depth_qk;
  tile.depth_vo = depth_vo;
  tile.num_consumers = 1;
  tile.is_ping_pong = false;
  tile.BN = 64;
  tile.k_stages = tile.v_stages = 3;
  if (depth_qk <= 128) {  // two CTAs an SM: one multiplies while the other waits for memory
    tile.ctas_per_sm = 2;
    tile.producer_registers = 64;
    tile.consumer_registers = 192;
    if (depth_qk == 64) tile.k_stages = tile.v_stages = 6;
    if (depth_qk == 96) tile.k_stages = tile.v_stages = 4;
  }
  return tile;
}

// Latent attention: two warpgroups a row tile, each with half of O's columns.
PAGODA_HOST_DEVICE constexpr TileConfig latent_tile(int depth_qk, int depth_vo) {
  TileConfig tile = packed_tile(depth_qk, depth_vo);
  tile.is_latent = true;
  tile.k_stages = 2;
  tile.v_stages = 1;  // none
  tile.producer_registers = 56;
  tile.consumer_registers = 224;
  return tile;
}

// Packed rows with gathered K and V: besides the stages, 32 KB or more of raw fp8 tiles in flight.
PAGODA_HOST_DEVICE constexpr TileConfig gather_tile(int depth_qk, int depth_vo, ScoreClass scores) {
  TileConfig tile = packed_tile(depth_qk, depth_vo);
  tile.load = LoadKind::kGather;
  tile.scores = scores;
  tile.k_stages = tile.v_stages = depth_qk == 64 ? 4 : 2;
  tile.raw_tiles = depth_qk == 64 ? 8 : 4;
  if (depth_qk == 192 || depth_qk == 96) tile.k_stages = tile.v_stages = 3;
  tile.producer_registers = 104;
  tile.consumer_registers = 152;
  if (scores == ScoreClass::kGeneral) tile.ctas_per_sm = 1;  // masks need registers
  if (scores == ScoreClass::kGeneral && depth_vo == 256) tile.BN = 32;
  if (depth_qk % 64 != 0) tile.swizzle = arch::Swizzle::k64B;
  return tile;
}

// Packed rows over an fp8 cache, with mma.sync. TMA fills columns past the head dim, up to whole
// panels, with zeros: they cost shared memory and some arithmetic, no traffic.
PAGODA_HOST_DEVICE constexpr TileConfig fp8_tile(int depth_qk, int depth_vo, ScoreClass scores) {
  TileConfig tile = packed_tile(depth_qk, depth_vo);
  tile.load = LoadKind::kTmaFp8;
  tile.block_rows = kWarpRows;
  tile.scores = scores;
  tile.depth_qk = depth_qk == 64 ? 64 : (depth_qk + 127) / 128 * 128;
  tile.depth_vo = depth_qk == 64 ? 64 : (depth_vo + 127) / 128 * 128;
  tile.swizzle = depth_qk == 64 ? arch::Swizzle::k64B : arch::Swizzle::k128B;
  tile.BN = 128;
  tile.k_stages = tile.v_stages = 2;
  if (scores == ScoreClass::kGeneral) tile.ctas_per_sm = 1;  // masks need registers
  return tile;
}

// e4m3 Q, K and V: a second warpgroup beside the consumers transposes V.
PAGODA_HOST_DEVICE constexpr TileConfig e4m3_tile(int depth_qk, int depth_vo, RowKind rows,
                                                  ScoreClass scores) {
  TileConfig tile;
  tile.element_bytes = 1;
  tile.rows = rows == RowKind::kPacked ? RowKind::kPacked : RowKind::kTokens;
  tile.scores = scores;
  tile.depth_qk = depth_qk;
  tile.depth_vo = depth_vo;
  tile.swizzle = depth_qk == 64 ? arch::Swizzle::k64B : arch::Swizzle::k128B;
  tile.BN = depth_vo == 256 ? 64 : 128;
  // Masks and biases need registers.
  if (scores == ScoreClass::kGeneral) tile.BN = depth_vo == 256 ? 32 : 64;
  tile.k_stages = tile.v_stages = depth_qk == 64 ? 4 : (depth_qk == 128 ? 3 : 2);
  // notes/fp8.md, Row tiles of several heads of e4m3 queries.
  tile.packs_heads = rows == RowKind::kGroupTokens || rows == RowKind::kTallTokens;
  const bool would_spill = rows == RowKind::kGroupTokens && depth_vo == 256;  // with two consumers
  if (rows == RowKind::kPacked || would_spill) {
    tile.num_consumers = 1;
    tile.is_ping_pong = false;
    tile.k_stages = tile.v_stages = depth_qk == 64 ? 6 : (depth_qk == 128 ? 4 : 3);
    tile.producer_registers = 64;
    tile.converter_registers = 64;
    tile.consumer_registers = 240;
    return tile;
  }
  tile.is_ping_pong = false;  // products are short: waiting for a turn costs more than it gains
  tile.consumer_registers = 208;
  if (scores == ScoreClass::kGeneral) tile.producer_registers = tile.converter_registers = 48;
  if (depth_vo == 256) {
    tile.producer_registers = tile.converter_registers = 40;
    tile.consumer_registers = 216;
  }
  if (depth_qk <= 128) tile.q_stages = 2;
  if (rows == RowKind::kTallTokens) {
    tile.num_consumers = 3;
    tile.overlaps_pv = false;
    // With 32 and 40 ptxas orders the consumers' exponentials in another way, 5 % slower at 8k.
    tile.producer_registers = 40;
    tile.converter_registers = 32;
    tile.consumer_registers = 136;
  }
  return tile;
}

// Tokens over an fp8 cache: a second warpgroup beside the consumers widens K and V.
PAGODA_HOST_DEVICE constexpr TileConfig widen_tile(int depth_qk, int depth_vo, ScoreClass scores) {
  TileConfig tile;
  tile.load = LoadKind::kTmaWiden;
  tile.depth_qk = depth_qk;
  tile.depth_vo = depth_vo;
  tile.scores = scores;
  if (depth_qk % 64 != 0) tile.swizzle = arch::Swizzle::k64B;
  const bool has_fast_reads = scores == ScoreClass::kPlain && depth_vo < 256;  // three in flight
  if (has_fast_reads) {
    tile.converter_registers = 56;
    tile.producer_registers = 40;
  }
  tile.consumer_registers = 208;
  tile.BN = depth_qk > 128 || scores == ScoreClass::kGeneral ? 64 : 128;
  if (depth_vo == 256) {  // 64 keys spill
    tile.BN = 32;
    tile.k_stages = tile.v_stages = 3;
  }
  tile.loaded_stages = tile.BN * depth_qk < 128 * 128 ? 2 : 1;
  if (depth_qk <= 128) tile.q_stages = 2;
  return tile;
}

PAGODA_HOST_DEVICE constexpr TileConfig tile_of(int depth_qk, int depth_vo, RowKind rows,
                                                ScoreClass scores, LoadKind load = LoadKind::kTma,
                                                int element_bytes = 2) {
  if (is_latent(depth_qk)) return latent_tile(depth_qk, depth_vo);
  if (element_bytes == 1) return e4m3_tile(depth_qk, depth_vo, rows, scores);
  if (load == LoadKind::kGather) return gather_tile(depth_qk, depth_vo, scores);
  if (load == LoadKind::kTmaFp8) return fp8_tile(depth_qk, depth_vo, scores);
  if (load == LoadKind::kTmaWiden) return widen_tile(depth_qk, depth_vo, scores);
  TileConfig tile = rows == RowKind::kPacked         ? packed_tile(depth_qk, depth_vo)
                    : rows == RowKind::kTokens       ? tokens_tile(depth_qk, depth_vo)
                    : rows == RowKind::kTallTokens   ? tall_tile(depth_qk, depth_vo)
                    : rows == RowKind::kShortTokens  ? short_tile(depth_qk, depth_vo)
                    : rows == RowKind::kSingleTokens ? single_tile(depth_qk, depth_vo)
                    : rows == RowKind::kMixedTokens  ? mixed_tile(depth_qk, depth_vo)
                                                     : stream_k_tile(depth_qk, depth_vo);
  tile.scores = scores;
  // Masks and biases need registers.
  if (scores == ScoreClass::kGeneral) {
    tile.BN = depth_vo == 256 ? 32 : 64;
    tile.overlaps_pv = true;
  }
  if (depth_qk % 64 != 0) tile.swizzle = arch::Swizzle::k64B;
  return tile;
}

template <class T_, int depth_qk, int depth_vo, RowKind rows, ScoreClass scores,
          LoadKind load = LoadKind::kTma>
struct Instance {
  using T = T_;
  static constexpr TileConfig tile = tile_of(depth_qk, depth_vo, rows, scores, load, sizeof(T));
};

}  // namespace pagoda::mha_sm90
