// The shapes that are compiled. Their tiles follow from the formulas of config.hpp; nothing was
// measured, because no Blackwell chip has run them.
#pragma once

#include <cstddef>

#include "kernels/mha_sm100/config.hpp"
#include "pagoda/dtype.hpp"

namespace pagoda::mha_sm100 {

// One element type and padded head dim, the same for QK and VO.
struct Shape {
  const char* name;
  DType dtype;
  int depth;
  int ctas = 1;  // of an MMA
};

// In registry order: the smallest shape that holds a call's head dims serves it. CTA pairs serve
// calls by the rule of is_ranked_lower(). A line is an instance; the build reads the names
// (cmake/PagodaKernelFamilies.cmake).
// clang-format off
inline constexpr Shape kShapes[] = {
    {"sm100.d64.bf16", DType::kBF16, 64},
    {"sm100.d128.bf16", DType::kBF16, 128},
    {"sm100.d64.f16", DType::kF16, 64},
    {"sm100.d128.f16", DType::kF16, 128},
    {"sm100.d64.f8e4m3", DType::kF8E4M3, 64},
    {"sm100.d128.f8e4m3", DType::kF8E4M3, 128},
    {"sm100.pair.d128.bf16", DType::kBF16, 128, 2},
    {"sm100.pair.d128.f16", DType::kF16, 128, 2},
    {"sm100.pair.d128.f8e4m3", DType::kF8E4M3, 128, 2},
};
// clang-format on

// Kernels for functors are compiled of this variant alone; a variant is a class of scores.
constexpr bool is_for_functors(const Shape& /*shape*/, size_t variant) {
  return static_cast<ScoreClass>(variant) == ScoreClass::kPlain;
}

template <class T_, class Out_, int depth, ScoreClass scores, int ctas = 1>
struct Instance {
  using T = T_;
  using Out = Out_;
  static constexpr TileConfig tile = tile_of(sizeof(T), depth, scores, ctas);
};

}  // namespace pagoda::mha_sm100
