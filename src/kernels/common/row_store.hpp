// Stores of O from the 32-bit registers that tensor memory is loaded into (bits of fp32): to a
// staging buffer in shared memory, or to the row in global memory.
#pragma once

#include <cstdint>

#include "arch/layout/swizzle.hpp"
#include "kernels/common/row_epilogue.hpp"

namespace pagoda::kernels {

// Columns first .. first + 7 as elements of T. A factor of 0 gives zeros: O may hold NaN then.
template <class T, int count>
PAGODA_DEVICE arch::Words<4> scaled_words(const uint32_t (&o)[count], int first, float factor) {
  arch::Words<4> words;
  PAGODA_UNROLL
  for (int i = 0; i < 4; ++i) {
    words.word[i] = scaled_pair<T>(core::bits_to_float(o[first + 2 * i]),
                                   core::bits_to_float(o[first + 2 * i + 1]), factor);
  }
  return words;
}

// Stores `count` columns of row `row` to the staging buffer of a TMA store: panels as wide as the
// swizzle, of `rows` rows each.
template <arch::Swizzle swizzle = arch::Swizzle::k128B, class T, int count>
PAGODA_DEVICE void stage_columns(arch::SharedPtr<T> staging, int rows, int row, int column,
                                 const uint32_t (&o)[count], float factor) {
  constexpr int chunk =
      static_cast<int>(swizzle_width_bytes(swizzle) / sizeof(T));  // columns of a panel
  PAGODA_UNROLL
  for (int i = 0; i < count; i += 8) {
    const auto dense = static_cast<uint32_t>(
        (((column + i) / chunk * rows + row) * chunk + (column + i) % chunk) * sizeof(T));
    const uint32_t offset = swizzle_address(staging.address() + dense, swizzle) - staging.address();
    arch::store((staging + static_cast<int32_t>(offset / sizeof(T))).template as<arch::Words<4>>(),
                scaled_words<T>(o, i, factor));
  }
}

// Stores `count` columns to `row` in global memory, except those past the head dim.
template <class T, int count>
PAGODA_DEVICE void store_columns(arch::GlobalPtr<T> row, int32_t dim, int32_t column,
                                 const uint32_t (&o)[count], float factor) {
  const uint64_t alignment = row.address();
  PAGODA_UNROLL
  for (int i = 0; i < count; i += 8) {
    if (column + i >= dim) break;
    const arch::Words<4> words = scaled_words<T>(o, i, factor);
    if (alignment % 16 == 0 && column + i + 8 <= dim) {
      arch::store((row + (column + i)).template as<arch::Words<4>>(), words);
      continue;
    }
    PAGODA_UNROLL
    for (int e = 0; e < 8; e += 2) {
      if (column + i + e < dim) {
        store_pair(row, column + i + e, words.word[e / 2], alignment % 4 == 0);
      }
    }
  }
}

}  // namespace pagoda::kernels
