// Swizzles for the expected bytes, written out once more: not the functions that the kernels use.
#pragma once

#include <cstddef>

#include "arch/layout/swizzle.hpp"

namespace pagoda::primitives {

using arch::Swizzle;

// A dense box in shared memory: where its byte `at` lies after the swizzle. PTX ISA, "Swizzling
// modes": 16-byte chunks change places inside 128, 64 or 32 bytes.
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
