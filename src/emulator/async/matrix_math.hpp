// The arithmetic of the matrix instructions: operands decoded to panels of floats, and the product
// of two panels. Products of 16-bit and 8-bit elements are exact in fp32; sums are made in fp32 in
// the order of k, one rounding each. The chip adds in another order with wider or narrower sums, so
// results agree exactly only where no sum rounds.
#pragma once

#include <concepts>
#include <cstdint>

#include "arch/layout/types.hpp"

namespace pagoda::emulator {

// kTFloat32: a float with 10 bits of mantissa.
enum class ElementType : uint8_t {
  kBFloat16,
  kHalf,
  kTFloat32,
  kFloat8E4M3,
  kFloat8E5M2,
  kUInt8,
  kInt8
};

template <class T>
[[nodiscard]] constexpr ElementType element_type() {
  if constexpr (std::same_as<T, arch::BFloat16>) {
    return ElementType::kBFloat16;
  } else if constexpr (std::same_as<T, arch::Half>) {
    return ElementType::kHalf;
  } else {
    static_assert(std::same_as<T, arch::Float8E4M3>, "not an operand of a matrix instruction");
    return ElementType::kFloat8E4M3;
  }
}
[[nodiscard]] constexpr int element_bytes(ElementType type) {
  switch (type) {
    case ElementType::kTFloat32: return 4;
    case ElementType::kBFloat16:
    case ElementType::kHalf: return 2;
    default: return 1;
  }
}

// Converts contiguous elements to every `stride`-th float.
void decode_elements(ElementType type, const void* from, int count, float* to, int stride = 1);

// d[m, n] += a[m, k] b[k, n], all row-major and dense. n must be a multiple of 8, m of 4.
void multiply_accumulate(int m, int n, int k, const float* a, const float* b, float* d);

}  // namespace pagoda::emulator
