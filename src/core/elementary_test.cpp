// exp and log against the C library in higher precision: errors in ulps, and special values.
#include "core/elementary.hpp"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <random>

namespace pagoda::core {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// |got - want| in units of the last place of a T next to `want`.
template <class T>
double ulps(T got, long double want) {
  int exponent = 0;
  std::frexp(want, &exponent);
  const int last = std::max(exponent - std::numeric_limits<T>::digits,
                            std::numeric_limits<T>::min_exponent - std::numeric_limits<T>::digits);
  return static_cast<double>(std::abs(static_cast<long double>(got) - want) /
                             std::ldexp(1.0L, last));
}

TEST(Elementary, exp_is_within_one_ulp) {
  std::mt19937_64 random(1);
  double worst = 0;
  for (const double range : {1e-9, 0.4, 30.0, 745.0}) {
    std::uniform_real_distribution<double> among(-range, std::min(range, 709.0));
    for (int i = 0; i < 100'000; ++i) {
      const double x = among(random);
      worst = std::max(worst, ulps(exp_double(x), std::exp(static_cast<long double>(x))));
    }
  }
  EXPECT_LT(worst, 1.0);
  EXPECT_EQ(exp_double(0), 1);
  EXPECT_EQ(exp_double(-0.0), 1);
  EXPECT_EQ(exp_double(-kInfinity), 0);
  EXPECT_EQ(exp_double(-746), 0);
  EXPECT_GT(exp_double(-745), 0);
  EXPECT_EQ(exp_double(kInfinity), kInfinity);
  EXPECT_EQ(exp_double(710), kInfinity);
  EXPECT_TRUE(std::isfinite(exp_double(709.78)));
  EXPECT_TRUE(std::isnan(exp_double(kNan)));
}

TEST(Elementary, log_is_within_one_ulp) {
  std::mt19937_64 random(2);
  double worst = 0;
  for (const double range : {1e-6, 0.1, 3.0, 300.0}) {  // of log2 x
    std::uniform_real_distribution<double> among(-range, range);
    for (int i = 0; i < 100'000; ++i) {
      const double x = std::exp2(among(random));
      worst = std::max(worst, ulps(log_double(x), std::log(static_cast<long double>(x))));
    }
  }
  EXPECT_LT(worst, 1.0);
  EXPECT_EQ(log_double(1), 0);
  EXPECT_EQ(log_double(0), -kInfinity);
  EXPECT_EQ(log_double(kInfinity), kInfinity);
  EXPECT_LT(ulps(log_double(0x1p-1074), -744.44007192138126231410729844608L), 1.0);
  EXPECT_TRUE(std::isnan(log_double(-1)));
  EXPECT_TRUE(std::isnan(log_double(kNan)));
}

}  // namespace
}  // namespace pagoda::core
