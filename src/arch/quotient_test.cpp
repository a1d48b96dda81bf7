// Divisor; quotient() and SmallDivisor for reciprocals that are one unit in the last place off, as
// those of rcp.approx may be: the emulator's are exact.
#include "arch/quotient.hpp"

#include <cmath>
#include <cstdint>
#include <gtest/gtest.h>
#include <random>
#include <vector>

namespace pagoda::arch {
namespace {

std::vector<float> reciprocals(int32_t b) {
  const float nearest = 1 / static_cast<float>(b);
  return {std::nextafter(nearest, 0.0F), nearest, std::nextafter(nearest, 2.0F)};
}

// The multiples of b and their neighbours are where a quotient is wrong first.
std::vector<int32_t> dividends(int32_t b, int64_t limit, std::mt19937& random) {
  std::vector<int32_t> result{0, static_cast<int32_t>(limit - 1)};
  std::uniform_int_distribution<int64_t> multiples(0, (limit - 1) / b);
  for (int i = 0; i < 200; ++i) {
    const int64_t multiple = (i < 20 ? (limit - 1) / b - i : multiples(random)) * b;
    for (const int64_t a : {multiple - 1, multiple, multiple + 1}) {
      if (a >= 0 && a < limit) result.push_back(static_cast<int32_t>(a));
    }
  }
  return result;
}

std::vector<int32_t> divisors(std::mt19937& random) {
  std::vector<int32_t> result;
  for (int32_t b = 1; b <= 300; ++b) result.push_back(b);
  std::uniform_int_distribution<int32_t> any(1, INT32_MAX);
  for (int i = 0; i < 600; ++i) result.push_back(any(random) >> i % 31 | 1);
  for (int32_t bit = 8; bit < 31; ++bit) {
    for (const int32_t b : {(1 << bit) - 1, 1 << bit, (1 << bit) + 1}) result.push_back(b);
  }
  result.push_back(INT32_MAX);
  return result;
}

TEST(Quotient, is_exact_for_every_dividend) {
  std::mt19937 random(1);
  for (const int32_t b : divisors(random)) {
    for (const int32_t a : dividends(b, (int64_t{1} << 31) - (1 << 10), random)) {
      for (const float r : reciprocals(b)) ASSERT_EQ(quotient(a, b, r), a / b) << a << ", " << b;
    }
  }
}

TEST(Quotient, by_a_divisor_of_the_host_is_exact) {
  std::mt19937 random(3);
  for (const int32_t b : divisors(random)) {
    for (const int32_t a : dividends(b, int64_t{1} << 31, random)) {
      ASSERT_EQ(Divisor(b).quotient(a), a / b) << a << ", " << b;
    }
  }
  EXPECT_EQ(Divisor().quotient(INT32_MAX), INT32_MAX);
}

TEST(Quotient, of_a_small_dividend_is_exact) {
  std::mt19937 random(2);
  for (const int32_t b : divisors(random)) {
    for (const int32_t a : dividends(b, 1 << 21, random)) {
      for (const float r : reciprocals(b)) ASSERT_EQ(small_quotient(a, r), a / b) << a << ", " << b;
    }
  }
}

// The limits are no wider than they must be: the test above sees a reciprocal that is off by more.
TEST(Quotient, of_a_worse_reciprocal_is_wrong) {
  const float worse = 1 / 3.0F * (1 - 0x1p-20F);
  EXPECT_NE(small_quotient((1 << 21) - 2, worse), ((1 << 21) - 2) / 3);
}

}  // namespace
}  // namespace pagoda::arch
