// What the kernel of this folder is compiled for: shapes and variants of a family, and the Config
// of each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/common/element_type.hpp"
#include "kernels/common/kv_buffer/config.hpp"
#include "pagoda/dtype.hpp"

namespace pagoda::kernels::kv_buffer {

// What an instance is compiled for: element type of Q, and of O unless that is e4m3 (then bf16),
// and padded head dims.
struct Shape {
  const char* name;
  DType dtype;
  int depth_qk;
  int depth_vo;
};

enum class RowKind : uint8_t {
  kPrefill,          // BM tokens of one query head
  kTokenGeneration,  // (token, head of the KV head's group) pairs of up to kFewTokens tokens
  kDecode,           // one token of each sequence that sees all its keys: heads of the group
  kDecodeTokens,     // a few tokens, which see all keys but those of the tokens after them
  kDecodeGeneral,    // one token or a few, with a sliding window, a soft cap, both or neither
};
constexpr bool is_decode(RowKind rows) { return rows >= RowKind::kDecode; }

// One of the kernels of a shape; a launch runs one of them.
struct Variant {
  RowKind rows;
  Staging staging;
  ScoreClass scores;
  int cluster = 1;  // TileConfig

  bool operator==(const Variant&) const = default;
};

// Sequences of up to so many query rows are served by token generation.
inline constexpr int32_t kFewTokens = 16;

// Wider heads have no prefill tile: O of 64 rows exceeds the registers. Token generation serves
// their prefill, 16 rows at a time.
constexpr bool has_prefill_tile(int depth_vo) { return depth_vo <= 256; }

// Decoding has kernels of its own where a warp's registers hold all columns of O.
constexpr bool has_decode_tile(const Shape& shape) {
  return shape.depth_qk == shape.depth_vo && shape.depth_qk <= 256;
}
// Whether latent rows are decoded by a shape: whole ones, of V in K.
constexpr bool is_latent(const Shape& shape) {
  return shape.depth_qk == 576 && shape.depth_vo == 512;
}
// e4m3 queries have the kernels over fp8 caches alone.
constexpr bool has_kernel(const Shape& shape, const Variant& variant) {
  if (variant.staging == Staging::kAsyncLatent) return is_latent(shape);
  if (variant.staging != Staging::kAsyncFp8 && shape.dtype == DType::kF8E4M3) return false;
  return !is_decode(variant.rows) || has_decode_tile(shape);
}

// The Config of a kernel. Its parameters stand in the kernel's symbol, which profilers print. T:
// the type of O, and of Q unless that is e4m3.
template <class Chip, class T_, int depth_qk, int depth_vo, RowKind rows, Staging staging,
          ScoreClass scores, int cluster>
struct Instance {
  using T = std::conditional_t<sizeof(T_) == 1, arch::BFloat16, T_>;
  static constexpr TileConfig tile = [] {
    TileConfig tile = Chip::tile_of(depth_qk, depth_vo, {rows, staging, scores, cluster});
    tile.q_bytes = sizeof(T_);
    return tile;
  }();
};

constexpr RowKind rows_of(const Shape& shape, const Variant& variant) {
  // Without a prefill tile the prefill variants are token kernels, which make_plan never launches.
  const bool is_missing = variant.rows == RowKind::kPrefill && !has_prefill_tile(shape.depth_vo);
  return is_missing ? RowKind::kTokenGeneration : variant.rows;
}

// The Instance of Chip::kShapes[shape] and Chip::kVariants[variant].
template <class Chip, size_t shape, size_t variant>
using InstanceOf =
    Instance<Chip, ElementType<Chip::kShapes[shape].dtype>, Chip::kShapes[shape].depth_qk,
             Chip::kShapes[shape].depth_vo, rows_of(Chip::kShapes[shape], Chip::kVariants[variant]),
             Chip::kVariants[variant].staging, Chip::kVariants[variant].scores,
             Chip::kVariants[variant].cluster>;

}  // namespace pagoda::kernels::kv_buffer
