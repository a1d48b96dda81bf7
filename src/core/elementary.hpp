// exp and log for a GPU without a math library (device_functions.hpp): plain C++, so that a
// test on the host measures their errors.
#pragma once

#include <cstdint>

#include "core/target.hpp"

namespace pagoda::core {

inline constexpr double kLn2High = 6.93147180369123816490e-01;  // 33 bits, exact times an integer
inline constexpr double kLn2Low = 1.90821492927058770002e-10;

// e^x within 1 ulp, the method and the coefficients of FreeBSD's e_exp.c. 0 below
// -745.2, infinity above 709.8; NaN stays NaN.
[[nodiscard]] PAGODA_HOST_DEVICE double exp_double(double x) {
  if (x > 709.782712893383973096) return __builtin_inf();
  if (x < -745.133219101941108420) return 0;
  if (x != x) return x;
  const double k = __builtin_rint(x * 1.44269504088896338700);
  const double high = x - k * kLn2High, low = k * kLn2Low;
  const double r = high - low, t = r * r;
  double p = 4.13813679705723846039e-08 * t - 1.65339022054652515390e-06;
  p = p * t + 6.61375632143793436117e-05;
  p = p * t - 2.77777777770155933842e-03;
  p = p * t + 1.66666666666666019037e-01;
  const double c = r - t * p;
  const double y = 1 - ((low - r * c / (2 - c)) - high);
  // In two steps: 2^k may be subnormal where the product is not, or the other way round.
  const int exponent = static_cast<int>(k), half = exponent / 2;
  const auto power = [](int e) {
    return __builtin_bit_cast(double, static_cast<uint64_t>(e + 1023) << 52U);
  };
  return y * power(half) * power(exponent - half);
}

// The natural logarithm within 1 ulp, the method and the coefficients of FreeBSD's e_log.c.
// -infinity of 0, NaN of negative numbers and of NaN.
[[nodiscard]] PAGODA_HOST_DEVICE double log_double(double x) {
  if (x == 0) return -__builtin_inf();
  if (!(x > 0)) return __builtin_nan("");
  if (x == __builtin_inf()) return x;
  int32_t k = 0;
  if (x < 0x1p-1022) {
    x *= 0x1p54;
    k = -54;
  }
  // x = 2^k (1 + f), sqrt(2) / 2 < 1 + f < sqrt(2).
  const auto bits = __builtin_bit_cast(uint64_t, x);
  const uint64_t mantissa = bits & 0xfffffffffffffU;
  const uint64_t is_upper = (mantissa + 0x95f6400000000U) >> 52U;
  k += static_cast<int32_t>(bits >> 52U) - 1023 + static_cast<int32_t>(is_upper);
  const double f = __builtin_bit_cast(double, mantissa | (0x3ffU - is_upper) << 52U) - 1;
  const double s = f / (2 + f), z = s * s, w = z * z;
  double even = 1.531383769920937332e-01 * w + 2.222219843214978396e-01;
  even = w * (even * w + 3.999999999940941908e-01);
  double odd = 1.479819860511658591e-01 * w + 1.818357216161805012e-01;
  odd = odd * w + 2.857142874366239149e-01;
  odd = z * (odd * w + 6.666666666666735130e-01);
  const double half_square = 0.5 * f * f, dk = k;
  return dk * kLn2High - ((half_square - (s * (half_square + even + odd) + dk * kLn2Low)) - f);
}

}  // namespace pagoda::core
