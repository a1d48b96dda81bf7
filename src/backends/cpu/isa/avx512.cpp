// The fp32 tile operations for AVX-512 (F, DQ, BW, VL).
#if defined(__x86_64__)

#include "backends/cpu/isa/avx512_convert.hpp"

namespace pagoda::cpu {
namespace {

constexpr int kF32Rows = 8;
constexpr int kF32Accumulators = 16;

}  // namespace
}  // namespace pagoda::cpu

#include "backends/cpu/isa/f32_ops.hpp"

namespace pagoda::cpu {

const TileOps kTileOpsAvx512F32 = make_f32_ops();

}  // namespace pagoda::cpu

#endif
