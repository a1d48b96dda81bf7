// The shapes that are compiled. Nothing was measured, because no Blackwell chip has run them.
#pragma once

#include <cstddef>

#include "kernels/mha_sm100_d512/config.hpp"
#include "pagoda/dtype.hpp"

namespace pagoda::mha_sm100_d512 {

// One element type and padded head dim, the same for QK and VO.
struct Shape {
  const char* name;
  DType dtype;
  int depth;
};

// In registry order, after those of mha_sm100. A line is an instance; the build reads the names
// (cmake/PagodaKernelFamilies.cmake).
// clang-format off
inline constexpr Shape kShapes[] = {
    {"sm100.d256.bf16", DType::kBF16, 256},
    {"sm100.d512.bf16", DType::kBF16, 512},
    {"sm100.d256.f16", DType::kF16, 256},
    {"sm100.d512.f16", DType::kF16, 512},
    {"sm100.d256.f8e4m3", DType::kF8E4M3, 256},
    {"sm100.d512.f8e4m3", DType::kF8E4M3, 512},
};
// clang-format on

// Kernels for functors are compiled of this variant alone; a variant is a class of scores.
constexpr bool is_for_functors(const Shape& /*shape*/, size_t variant) {
  return static_cast<ScoreClass>(variant) == ScoreClass::kPlain;
}

template <class T_, class Out_, int depth, ScoreClass scores>
struct Instance {
  using T = T_;
  using Out = Out_;
  static constexpr TileConfig tile = tile_of(sizeof(T), depth, scores);
};

}  // namespace pagoda::mha_sm100_d512
