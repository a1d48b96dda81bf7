// How many CTAs a multiprocessor takes at once, by their shared memory.
//
// CUDA C++ Programming Guide, "Compute Capabilities": shared memory of a multiprocessor (164 KB on
// 8.0, 100 KB on 8.6, 228 KB on 9.0), of which each CTA takes 1 KB besides its own.
#pragma once

#include <cstdint>

namespace pagoda::arch {

// Shared memory of a CTA that needs `bytes`: as much more as keeps a multiprocessor, which has
// `per_sm` bytes and reserves `reserved` for each CTA, from taking more than `most_ctas`.
constexpr int32_t shared_bytes_for(int32_t bytes, int32_t most_ctas, int32_t per_sm,
                                   int32_t reserved) {
  constexpr int32_t kUnit = 1024;  // a multiple of the unit of allocation
  const int32_t least = (per_sm / (most_ctas + 1) - reserved) / kUnit * kUnit + kUnit;
  const int32_t largest = per_sm / most_ctas - reserved;
  return least > bytes && least <= largest ? least : bytes;
}

}  // namespace pagoda::arch
