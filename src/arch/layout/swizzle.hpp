// The shared-memory swizzles of TMA, wgmma and tcgen05: the index of a 16-byte (or 32-byte) chunk
// inside a line of 32, 64 or 128 bytes, XORed with higher bits of the same address. PTX ISA,
// "Swizzling Modes".
#pragma once

#include <cstdint>

#include "core/target.hpp"

namespace pagoda::arch {

enum class Swizzle : uint8_t {
  kNone,
  k32B,
  k64B,
  k128B,
  k128BAtom32B,  // 128-byte lines, 32-byte chunks: for MN-major 4-byte elements; SM100 and TMA only
};

// Bytes of one line of the pattern: a box or panel is at most this wide.
PAGODA_HOST_DEVICE constexpr uint32_t swizzle_width_bytes(Swizzle swizzle) {
  switch (swizzle) {
    case Swizzle::kNone: return 16;
    case Swizzle::k32B: return 32;
    case Swizzle::k64B: return 64;
    default: return 128;
  }
}

// The period of the pattern in bytes; tiles are aligned to it.
PAGODA_HOST_DEVICE constexpr uint32_t swizzle_repeat_bytes(Swizzle swizzle) {
  switch (swizzle) {
    case Swizzle::kNone: return 16;
    case Swizzle::k32B: return 256;
    case Swizzle::k64B: return 512;
    case Swizzle::k128B: return 1024;
    default: return 512;
  }
}

// The address to which the swizzle moves the byte at `address`. `base_offset` is the field of a
// matrix descriptor: the 128-byte line, modulo 8, on which the pattern starts. TMA always counts
// from line 0.
PAGODA_HOST_DEVICE constexpr uint32_t swizzle_address(uint32_t address, Swizzle swizzle,
                                                      uint32_t base_offset = 0) {
  const uint32_t line = (address >> 7) - base_offset;
  switch (swizzle) {
    case Swizzle::kNone: return address;
    case Swizzle::k32B: return address ^ (line & 1U) << 4;
    case Swizzle::k64B: return address ^ (line & 3U) << 4;
    case Swizzle::k128B: return address ^ (line & 7U) << 4;
    default: return address ^ (line & 3U) << 5;
  }
}

// CUtensorMapSwizzle.
PAGODA_HOST_DEVICE constexpr uint32_t tensor_map_code(Swizzle swizzle) {
  return static_cast<uint32_t>(swizzle);
}

// Bits 62-63 of an SM90 matrix descriptor; kNoSwizzleCode where SM90 lacks the mode.
inline constexpr uint32_t kNoSwizzleCode = ~0U;
PAGODA_HOST_DEVICE constexpr uint32_t sm90_code(Swizzle swizzle) {
  switch (swizzle) {
    case Swizzle::kNone: return 0;
    case Swizzle::k128B: return 1;
    case Swizzle::k64B: return 2;
    case Swizzle::k32B: return 3;
    default: return kNoSwizzleCode;
  }
}

// Bits 61-63 of an SM100 matrix descriptor. Codes 3, 5 and 7 are invalid.
PAGODA_HOST_DEVICE constexpr uint32_t sm100_code(Swizzle swizzle) {
  switch (swizzle) {
    case Swizzle::kNone: return 0;
    case Swizzle::k128BAtom32B: return 1;
    case Swizzle::k128B: return 2;
    case Swizzle::k64B: return 4;
    default: return 6;
  }
}

}  // namespace pagoda::arch
