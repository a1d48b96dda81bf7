// Small floating-point formats for the expected bytes, by search over their values: slow, but
// independent of the conversions under test.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

namespace pagoda::primitives {

// The value of a code of a format with `exponent` and `mantissa` bits and IEEE's bias.
inline double decode_float(uint32_t code, int exponent, int mantissa) {
  const int bias = (1 << (exponent - 1)) - 1;
  const auto e = static_cast<int>(code >> mantissa & ((1U << exponent) - 1));
  const double fraction = code & ((1U << mantissa) - 1);
  const double unit = std::ldexp(1.0, -mantissa);
  const double value =
      e == 0 ? std::ldexp(fraction * unit, 1 - bias) : std::ldexp(1.0 + fraction * unit, e - bias);
  return (code >> (exponent + mantissa)) != 0 ? -value : value;
}

// The code nearest to x, ties to the even code, among the codes up to `largest` of either sign.
// Finite values increase with the code, so a binary search finds the two neighbours.
inline uint32_t nearest_code(double x, int exponent, int mantissa, uint32_t largest) {
  const uint32_t sign = std::signbit(x) ? 1U << (exponent + mantissa) : 0;
  const double size = std::fabs(x);
  uint32_t low = 0, high = largest;
  while (low < high) {  // the largest code whose value is at most `size`
    const uint32_t middle = (low + high + 1) / 2;
    if (decode_float(middle, exponent, mantissa) <= size) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  if (low == largest) return sign | low;
  const double below = size - decode_float(low, exponent, mantissa);
  const double above = decode_float(low + 1, exponent, mantissa) - size;
  const bool is_up = above < below || (above == below && low % 2 == 1);
  return sign | (is_up ? low + 1 : low);
}

inline uint16_t to_bf16(double x) {  // the code above the largest is infinity, at twice its value
  return static_cast<uint16_t>(nearest_code(x, 8, 7, 0x7F80));
}
inline uint16_t to_f16(double x) { return static_cast<uint16_t>(nearest_code(x, 5, 10, 0x7C00)); }
inline uint8_t to_e4m3(double x) {  // saturates: 0x7E is 448, 0x7F is NaN
  return static_cast<uint8_t>(nearest_code(x, 4, 3, 0x7E));
}

}  // namespace pagoda::primitives
