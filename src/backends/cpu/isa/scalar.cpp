// The fp32 tile operations for any processor (SSE2 on x86-64).
#include "backends/cpu/isa/scalar_convert.hpp"
#include "backends/cpu/isa/vec_scalar.hpp"

namespace pagoda::cpu {
namespace {

constexpr int kF32Rows = 2;
constexpr int kF32Accumulators = 8;

inline void transpose16(float* dst, const float* const* rows, int first) {
  transpose16_scalar(dst, rows, first);
}
inline void convert_to_f32(float* dst, const void* src, int element, int n) {
  convert_to_f32_scalar(dst, src, element, n, 0);
}
template <int Element>
inline Vec load_widened(const void* src, int first, int n) {
  Vec x = Vec::zero();
  for (int i = 0; i < Vec::kLanes && i < n; ++i) x.v[i] = element_at(src, Element, first + i);
  return x;
}
inline void store_row(void* dst, int element, const float* src, int n, float factor) {
  store_row_scalar(dst, element, src, n, factor, 0);
}

}  // namespace
}  // namespace pagoda::cpu

#include "backends/cpu/isa/f32_ops.hpp"

namespace pagoda::cpu {

const TileOps kTileOpsScalarF32 = make_f32_ops();

}  // namespace pagoda::cpu
