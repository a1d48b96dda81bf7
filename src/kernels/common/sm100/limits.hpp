// What every Blackwell kernel is bound by: shared memory, swizzles of its operands, pages that TMA loads well.
#pragma once

#include <cstdint>

#include "arch/layout/swizzle.hpp"
#include "core/target.hpp"

namespace pagoda::kernels::sm100 {

// 228 KB of a multiprocessor less 1 KB that the system takes (CUDA C++ Programming Guide, compute
// capability 10.0).
inline constexpr int kSharedBytes = 227 * 1024;
// Of these, what is neither an operand nor a ring of K and V: rescale factors, barriers, work items.
inline constexpr int kOtherBytes = 2816;

// Pages, or the parts of pages that one TMA copy loads, have at least so many keys; smaller ones are gathered.
// (Twice as many page table entries a tile would be read at once, and kept in registers.)
inline constexpr int kMinPieceRows = 16;

// K and V that the tiles of one section of a causal grid share: half of a B200's 126 MB of L2. Not measured.
inline constexpr int64_t kL2Bytes = 64 << 20;

// 8-bit operands have swizzled lines of 64 bytes: chunks of 64 elements, as 16-bit ones.
PAGODA_HOST_DEVICE constexpr arch::Swizzle swizzle_of(int element_bytes) {
  return element_bytes == 1 ? arch::Swizzle::k64B : arch::Swizzle::k128B;
}

}  // namespace pagoda::kernels::sm100
