// tanh of soft caps against double precision.
#include "softmax/tanh.hpp"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>

namespace pagoda::softmax {
namespace {

double error_of(float value, float x) { return std::abs(double{value} - std::tanh(double{x})); }
float point(int i, float step) { return static_cast<float>(i) * step; }

TEST(Tanh, by_exponentials_is_exact_to_single_precision_of_1) {
  for (int i = -60'000; i <= 60'000; ++i) {
    const float x = point(i, 0.00037F);
    ASSERT_LE(error_of(tanh_by_exp2(x), x), 2.5e-7) << x;
    ASSERT_LE(error_of(tanh_approx(x), x), 3e-7) << x;
  }
}

TEST(Tanh, near_0_is_exact_relative_to_itself) {
  for (int i = -50'000; i <= 50'000; ++i) {
    const float x = point(i, 0.625F / 50'000);
    ASSERT_LE(error_of(tanh_approx(x), x), 2.4e-7 * std::abs(std::tanh(double{x}))) << x;  // 2 ulps
  }
  EXPECT_EQ(tanh_approx(0), 0);
  EXPECT_EQ(tanh_approx(1e-30F), 1e-30F);
}

TEST(ShortTanh, is_within_its_bound_for_factors_of_any_size) {
  for (const float inner : {1e-5F, 1.8e-3F, -0.02F, 1.0F, 300.0F, 1e5F}) {
    for (const float outer : {1.0F, 72.0F}) {
      const ShortTanh tanh = ShortTanh::of(inner).scaled(outer);
      const float range = ShortTanh::kRange / std::abs(inner);
      EXPECT_TRUE(ShortTanh::covers(inner, 0.999F * range));
      EXPECT_FALSE(ShortTanh::covers(inner, 1.001F * range));
      for (int i = -10'000; i <= 10'000; ++i) {
        const float x = point(i, range / 10'000);
        const double expected = double{outer} * std::tanh(double{inner} * double{x});
        ASSERT_NEAR(tanh(x), expected, 2e-7 * double{outer}) << inner << " * " << x;
      }
      EXPECT_GT(std::abs(double{tanh(2 * range)} -
                         double{outer} * std::tanh(2 * double{inner} * double{range})),
                1e-3 * double{outer});
    }
  }
}

TEST(ShortTanh, is_for_no_score_where_its_coefficients_would_not_be_numbers) {
  for (const float inner : {0.0F, 1e-6F, 1e-30F, -1e-9F, 2e5F, 1e30F}) {
    EXPECT_FALSE(ShortTanh::covers(inner, 0)) << inner;
  }
}

TEST(Tanh, of_what_is_not_finite) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const float large : {100.0F, 1e30F, kInfinity}) {
    EXPECT_EQ(tanh_by_exp2(large), 1);
    EXPECT_EQ(tanh_by_exp2(-large), -1);
    EXPECT_EQ(tanh_approx(-large), -1);
  }
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(tanh_by_exp2(nan)));
  EXPECT_TRUE(std::isnan(ShortTanh::of(0.1F)(nan)));
  EXPECT_TRUE(std::isnan(tanh_approx(nan)));
}

}  // namespace
}  // namespace pagoda::softmax
