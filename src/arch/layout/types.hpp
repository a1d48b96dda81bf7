// Element types of matrix operands, as tags with their size, and the enumerations and structs that
// the GPU and the emulator share.
#pragma once

#include <cstdint>

#include "core/target.hpp"

namespace pagoda::arch {

struct BFloat16 {
  uint16_t bits;
};
struct Half {
  uint16_t bits;
};
struct Float8E4M3 {
  uint8_t bits;
};

struct Dim3 {
  int32_t x = 1, y = 1, z = 1;
};

// N 32-bit words moved as one access.
template <int N>
struct alignas(4 * N) Words {
  static_assert(N == 1 || N == 2 || N == 4, "an access moves 4, 8 or 16 bytes");
  uint32_t word[N];
};

enum class Scope : uint8_t { kCta, kCluster, kGpu, kSystem };
enum class Order : uint8_t { kRelaxed, kAcquire, kRelease, kAcqRel };

// L2 eviction priority of a copy's lines: cache policies of createpolicy, encoded as in CUTLASS.
enum class Eviction : uint64_t {
  kNormal = 0x1000000000000000,
  kFirst = 0x12F0000000000000,
  kLast = 0x14F0000000000000,
};
constexpr const char* name(Eviction eviction) {
  switch (eviction) {
    case Eviction::kNormal: return "evict normal";
    case Eviction::kFirst: return "evict first";
    case Eviction::kLast: return "evict last";
  }
  return "an undefined policy";
}

// TMA coordinates, innermost dimension first.
template <int Rank>
struct TmaCoordinates {
  static_assert(Rank >= 1 && Rank <= 5, "a tensor map has 1 to 5 dimensions");
  int32_t value[Rank];
};

}  // namespace pagoda::arch
