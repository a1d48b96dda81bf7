// Loads of 8 elements of a row of global memory, of 16 bits or of e4m3, at any address.
#pragma once

#include <cstdint>
#include <type_traits>

#include "arch/layout/types.hpp"
#include "arch/memory.hpp"
#include "core/target.hpp"

namespace pagoda::operand {

// The first `count` of 8 elements of `bytes` bytes, one by one; the others are zeros.
template <int bytes>
PAGODA_DEVICE arch::Words<4> load_elements(arch::GlobalPtr<const char> from, int32_t count) {
  using Bits = std::conditional_t<bytes == 1, uint8_t, uint16_t>;
  arch::Words<4> value{{0, 0, 0, 0}};
  PAGODA_UNROLL
  for (int i = 0; i < 8; ++i) {
    if (i >= count) continue;
    const uint32_t element = arch::load_read_only((from + i * bytes).template as<const Bits>());
    value.word[i * bytes / 4] |= element << static_cast<uint32_t>(8 * (i * bytes % 4));
  }
  return value;
}

// The same. is_aligned: every row starts at a multiple of the vector's 8 * bytes bytes.
template <int bytes>
PAGODA_DEVICE arch::Words<4> load_vector(arch::GlobalPtr<const char> from, int32_t count,
                                         bool is_aligned) {
  if (count < 8 || !is_aligned) return load_elements<bytes>(from, count);
  if constexpr (bytes == 1) {
    const auto half = arch::load_read_only(from.template as<const arch::Words<2>>());
    return {{half.word[0], half.word[1], 0, 0}};
  } else {
    return arch::load_read_only(from.template as<const arch::Words<4>>());
  }
}

}  // namespace pagoda::operand
