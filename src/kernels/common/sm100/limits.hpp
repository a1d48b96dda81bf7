// Limits that every Blackwell kernel shares: shared memory, the swizzle of its operands, and the
// smallest page that TMA loads.
#pragma once

#include <cstdint>

#include "arch/layout/swizzle.hpp"
#include "core/target.hpp"

namespace pagoda::kernels::sm100 {

// A multiprocessor has 228 KB; the system reserves 1 KB of it per CTA (CUDA C++ Programming Guide,
// compute capability 10.0).
inline constexpr int kSharedBytes = 227 * 1024;
// Bound for what is neither Q, P nor a slot of K and V: rescale factors, barriers, work tiles.
inline constexpr int kOtherBytes = 2816;

// One TMA copy loads at least this many keys, so pages (or the parts of pages that divide a key
// tile) of fewer keys are gathered or unsupported. Smaller copies would keep twice as many page
// table entries of a tile in registers.
inline constexpr int kMinPieceRows = 16;

// K and V of a TileGrid section: half of the 126 MB of L2 of a B200. Not measured.
inline constexpr int64_t kL2Bytes = 64 << 20;

// Lines of 8-bit operands are 64 bytes wide: a panel has 64 columns, as with 16-bit operands.
PAGODA_HOST_DEVICE constexpr arch::Swizzle swizzle_of(int element_bytes) {
  return element_bytes == 1 ? arch::Swizzle::k64B : arch::Swizzle::k128B;
}

}  // namespace pagoda::kernels::sm100
