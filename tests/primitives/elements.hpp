// Matrix elements of the inputs: small integers, whose products and sums are exact.
#pragma once

#include <concepts>

#include "arch/layout/types.hpp"
#include "case.hpp"
#include "numbers.hpp"

namespace pagoda::primitives {

using arch::BFloat16, arch::Float8E4M3, arch::Half;

// The bytes of small integers in the format of T.
template <class T>
Bytes encode_elements(const std::vector<int32_t>& values) {
  Bytes bytes(values.size() * sizeof(T));
  for (size_t i = 0; i < values.size(); ++i) {
    T element{};
    if constexpr (std::same_as<T, BFloat16>) {
      element.bits = to_bf16(values[i]);
    } else if constexpr (std::same_as<T, Half>) {
      element.bits = to_f16(values[i]);
    } else {
      element.bits = to_e4m3(values[i]);
    }
    std::memcpy(&bytes[i * sizeof(T)], &element, sizeof(T));
  }
  return bytes;
}

inline std::vector<int32_t> random_integers(size_t count, int32_t limit, uint64_t seed) {
  Random random(seed);
  std::vector<int32_t> values(count);
  for (int32_t& value : values) value = random.integer(-limit, limit);
  return values;
}

}  // namespace pagoda::primitives
