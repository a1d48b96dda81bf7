// Ceiling of the bf16 tile product (tdpbf16ps): 16 x 32 by 32 x 16 a step.
#include <immintrin.h>

#include "bench/ceilings/kernels.hpp"

namespace pagoda::bench {
namespace {

// Intel SDM, volume 1, section 18: the 64-byte operand of LDTILECFG, palette 1.
struct alignas(64) TileConfig {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t column_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

// In static storage: GCC's _tile_loadconfig declares only the first eight bytes as read, and the
// rest of a local would not be stored.
const TileConfig kTileConfig;

}  // namespace

int64_t bf16_rounds_amx(int64_t rounds) {
  _tile_loadconfig(&kTileConfig);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_zero(4);
  _tile_zero(5);
  _tile_zero(6);
  _tile_zero(7);
  for (int64_t r = 0; r < rounds; ++r) {  // four accumulators, two operands of each side
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_release();
  return rounds * 4 * (2 * 16 * 16 * 32);
}

}  // namespace pagoda::bench
