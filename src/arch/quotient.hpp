// Integer division for the code that makes work tiles and looks up pages. The GPUs have no such
// instruction: a division takes 36 instructions, quotient() 16, SmallDivisor 5, and Divisor, which
// the host makes, 3. What runs before the first load of a kernel is fetched from DRAM, and one lane
// of the scheduler divides up to ten times.
#pragma once

#include <cstdint>

#include "arch/math.hpp"
#include "core/target.hpp"

namespace pagoda::arch {

// Exact for dividends below 2^21: (a + 0.5) / b is at least 0.5 / b away from an integer, and
// reciprocal and product together err by less than a / b * 2^-22.
PAGODA_DEVICE int32_t small_quotient(int32_t a, float reciprocal) {
  return static_cast<int32_t>((static_cast<float>(a) + 0.5F) * reciprocal);
}

// a - factor * b, which fits 32 bits where factor is near a / b.
PAGODA_DEVICE int32_t rest_of(int32_t a, int32_t factor, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) -
                              static_cast<uint32_t>(factor) * static_cast<uint32_t>(b));
}

// a / b, 0 <= a. The first estimate errs by at most 1 + a / b * 2^-22, so that the remainder is a
// small dividend, maybe negative. The corrected estimate errs by at most 1: a negative remainder is
// rounded towards zero, and divisors from 2^20 on may round near an integer, never both.
PAGODA_DEVICE int32_t quotient(int32_t a, int32_t b, float reciprocal) {
  auto result = static_cast<int32_t>(static_cast<float>(a) * reciprocal);
  int32_t rest = rest_of(a, result, b);
  result += static_cast<int32_t>((static_cast<float>(rest) + 0.5F) * reciprocal);
  rest = rest_of(a, result, b);
  if (rest < 0) return result - 1;
  return rest >= b ? result + 1 : result;
}

// 0 <= a < 2^31 - 2^10, b > 0.
[[nodiscard]] PAGODA_DEVICE int32_t quotient(int32_t a, int32_t b) {
  return quotient(a, b, reciprocal_approx(static_cast<float>(b)));
}

// Divides dividends in [0, 2^21) by one number > 0.
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

// Divides dividends in [0, 2^31) by one number > 0 that the host knows: by multiplication with its
// reciprocal, 2^(31 + shift) / divisor rounded up, where 2^shift is at least the divisor. The
// estimate is too large by less than 1 / divisor, which changes no integer part (Granlund and
// Montgomery, "Division by invariant integers using multiplication", 1994).
class Divisor {
 public:
  Divisor() = default;  // 1
  explicit constexpr Divisor(int32_t divisor) {
    while (int64_t{1} << shift_ < divisor) ++shift_;
    const uint64_t power = uint64_t{1} << (31U + shift_);
    const auto by = static_cast<uint64_t>(divisor);
    multiplier_ = static_cast<uint32_t>((power + by - 1) / by);
  }

  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int32_t quotient(int32_t a) const {
    const uint32_t twice = static_cast<uint32_t>(a) << 1U;
    return static_cast<int32_t>(static_cast<uint32_t>(uint64_t{twice} * multiplier_ >> 32U) >>
                                shift_);
  }

 private:
  uint32_t multiplier_ = 1U << 31U;
  uint32_t shift_ = 0;
};

}  // namespace pagoda::arch
