// Swizzles for the expected bytes, independent of the functions that the kernels use.
#pragma once

#include <cstddef>

#include "arch/layout/swizzle.hpp"

namespace pagoda::primitives {

using arch::Swizzle;

// The offset of byte `at` of a dense box after the swizzle. PTX ISA, "Swizzling Modes": 16-byte
// chunks are permuted inside 128, 64 or 32 bytes.
inline size_t swizzled(size_t at, Swizzle swizzle) {
  const size_t line = at / 128;
  switch (swizzle) {
    case Swizzle::k128B: return at ^ line % 8 * 16;
    case Swizzle::k64B: return at ^ line % 4 * 16;
    case Swizzle::k32B: return at ^ line % 2 * 16;
    default: return at;
  }
}

inline const char* swizzle_name(Swizzle swizzle) {
  switch (swizzle) {
    case Swizzle::k128B: return "128B";
    case Swizzle::k64B: return "64B";
    case Swizzle::k32B: return "32B";
    default: return "none";
  }
}

}  // namespace pagoda::primitives
