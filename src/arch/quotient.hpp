// Integer division for the code that makes work tiles and looks up pages. The GPUs have no such
// instruction: a division takes 36 instructions, quotient() 11, SmallDivisor 5. What runs before the
// first load of a kernel is fetched from DRAM, and one lane of the scheduler divides ten times.
#pragma once

#include <cmath>
#include <cstdint>

#include "arch/math.hpp"
#include "core/target.hpp"

namespace pagoda::arch {

// Dividends below 2^21: (a + 0.5) / b is further from an integer, by 0.5 / b, than reciprocal and
// product are off: below a / b * 2^-22.
PAGODA_DEVICE int32_t small_quotient(int32_t a, float reciprocal) {
  return static_cast<int32_t>((static_cast<float>(a) + 0.5F) * reciprocal);
}
// Any dividend, divisors below 2^20. The first estimate is off by at most 1 + a / b * 2^-22, so that
// the rest is a small dividend, which may be negative.
PAGODA_DEVICE int32_t quotient(int32_t a, int32_t b, float reciprocal) {
  const auto estimate = static_cast<int32_t>(static_cast<float>(a) * reciprocal);
  const int32_t rest = a - estimate * b;
  return estimate + static_cast<int32_t>(floorf((static_cast<float>(rest) + 0.5F) * reciprocal));
}

// a / b, a >= 0, 0 < b < 2^20.
[[nodiscard]] PAGODA_DEVICE int32_t quotient(int32_t a, int32_t b) {
  return quotient(a, b, reciprocal_approx(static_cast<float>(b)));
}

// Divides by one number, in (0, 2^20), dividends in [0, 2^21).
class SmallDivisor {
 public:
  PAGODA_DEVICE explicit SmallDivisor(int32_t divisor)
      : reciprocal_(reciprocal_approx(static_cast<float>(divisor))) {}

  [[nodiscard]] PAGODA_DEVICE int32_t quotient(int32_t a) const {
    return small_quotient(a, reciprocal_);
  }

 private:
  float reciprocal_;
};

}  // namespace pagoda::arch
