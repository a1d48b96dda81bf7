// The compiled instances and their tiles. README.md has the times that they follow from.
#pragma once

#include <array>

#include "kernels/common/kv_buffer/variants.hpp"
#include "pagoda/dtype.hpp"

namespace pagoda::mha_sm90_decode {

using kernels::ScoreClass;
using kernels::kv_buffer::RowKind;
using kernels::kv_buffer::Shape;
using kernels::kv_buffer::Staging;
using kernels::kv_buffer::TileConfig;
using kernels::kv_buffer::Variant;

// In the order of the registry. A line is an instance: a translation unit with a kernel for each of
// kVariants. The build reads the names (cmake/PagodaKernelFamilies.cmake).
// clang-format off
inline constexpr Shape kShapes[] = {
    {"sm90_decode.d64.bf16", DType::kBF16, 64, 64},
    {"sm90_decode.d128.bf16", DType::kBF16, 128, 128},
    {"sm90_decode.d256.bf16", DType::kBF16, 256, 256},
    {"sm90_decode.d64.f16", DType::kF16, 64, 64},
    {"sm90_decode.d128.f16", DType::kF16, 128, 128},
    {"sm90_decode.d256.f16", DType::kF16, 256, 256},
    {"sm90_decode.d64.f8e4m3", DType::kF8E4M3, 64, 64},
    {"sm90_decode.d128.f8e4m3", DType::kF8E4M3, 128, 128},
    {"sm90_decode.d256.f8e4m3", DType::kF8E4M3, 256, 256},
    {"sm90_decode.d576x512.bf16", DType::kBF16, 576, 512},
    {"sm90_decode.d576x512.f16", DType::kF16, 576, 512},
};
// clang-format on

inline constexpr std::array kVariants = {
    Variant{RowKind::kDecode, Staging::kAsync, ScoreClass::kPlain, 1},
    Variant{RowKind::kDecode, Staging::kAsync, ScoreClass::kPlain, 2},
    Variant{RowKind::kDecode, Staging::kAsync, ScoreClass::kPlain, 8},
    Variant{RowKind::kDecodeTokens, Staging::kAsync, ScoreClass::kPlain, 1},
    Variant{RowKind::kDecodeTokens, Staging::kAsync, ScoreClass::kPlain, 2},
    Variant{RowKind::kDecodeTokens, Staging::kAsync, ScoreClass::kPlain, 8},
    Variant{RowKind::kDecode, Staging::kAsyncNarrow, ScoreClass::kPlain, 1},
    Variant{RowKind::kDecode, Staging::kAsyncNarrow, ScoreClass::kPlain, 2},
    Variant{RowKind::kDecode, Staging::kAsyncNarrow, ScoreClass::kPlain, 8},
    Variant{RowKind::kDecodeTokens, Staging::kAsyncNarrow, ScoreClass::kPlain, 1},
    Variant{RowKind::kDecodeTokens, Staging::kAsyncNarrow, ScoreClass::kPlain, 2},
    Variant{RowKind::kDecodeTokens, Staging::kAsyncNarrow, ScoreClass::kPlain, 8},
    Variant{RowKind::kDecodeGeneral, Staging::kAsync, ScoreClass::kPlain, 1},
    Variant{RowKind::kDecodeGeneral, Staging::kAsync, ScoreClass::kPlain, 2},
    Variant{RowKind::kDecodeGeneral, Staging::kAsync, ScoreClass::kPlain, 8},
    Variant{RowKind::kDecodeGeneral, Staging::kAsyncNarrow, ScoreClass::kPlain, 1},
    Variant{RowKind::kDecodeGeneral, Staging::kAsyncNarrow, ScoreClass::kPlain, 2},
    Variant{RowKind::kDecodeGeneral, Staging::kAsyncNarrow, ScoreClass::kPlain, 8},
    Variant{RowKind::kDecode, Staging::kAsyncFp8, ScoreClass::kPlain, 1},
    Variant{RowKind::kDecode, Staging::kAsyncFp8, ScoreClass::kPlain, 2},
    Variant{RowKind::kDecode, Staging::kAsyncFp8, ScoreClass::kPlain, 8},
    Variant{RowKind::kDecodeTokens, Staging::kAsyncFp8, ScoreClass::kPlain, 1},
    Variant{RowKind::kDecodeTokens, Staging::kAsyncFp8, ScoreClass::kPlain, 2},
    Variant{RowKind::kDecodeTokens, Staging::kAsyncFp8, ScoreClass::kPlain, 8},
    Variant{RowKind::kDecode, Staging::kAsyncLatent, ScoreClass::kPlain, 1},
    Variant{RowKind::kDecode, Staging::kAsyncLatent, ScoreClass::kPlain, 2},
    Variant{RowKind::kDecode, Staging::kAsyncLatent, ScoreClass::kPlain, 4},
    Variant{RowKind::kDecode, Staging::kAsyncLatent, ScoreClass::kPlain, 8},
    Variant{RowKind::kDecodeTokens, Staging::kAsyncLatent, ScoreClass::kPlain, 1},
    Variant{RowKind::kDecodeTokens, Staging::kAsyncLatent, ScoreClass::kPlain, 2},
    Variant{RowKind::kDecodeTokens, Staging::kAsyncLatent, ScoreClass::kPlain, 4},
    Variant{RowKind::kDecodeTokens, Staging::kAsyncLatent, ScoreClass::kPlain, 8},
};

constexpr TileConfig tile_of(int depth_qk, int /*depth_vo*/, const Variant& variant) {
  if (variant.staging == Staging::kAsyncLatent) {
    return kernels::kv_buffer::latent_tile(variant.rows == RowKind::kDecodeTokens, variant.cluster);
  }
  return kernels::kv_buffer::decode_tile(depth_qk, variant.rows == RowKind::kDecodeTokens,
                                         variant.rows == RowKind::kDecodeGeneral, variant.cluster,
                                         variant.staging);
}

struct Chip {
  static constexpr auto& kShapes = mha_sm90_decode::kShapes;
  static constexpr auto& kVariants = mha_sm90_decode::kVariants;
  static constexpr auto tile_of = mha_sm90_decode::tile_of;
};

}  // namespace pagoda::mha_sm90_decode
