// Scale, soft cap, ALiBi and the polynomial exp2 against double precision.
#include "softmax/score.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <gtest/gtest.h>
#include <limits>
#include <vector>

#include "softmax/exp2.hpp"

namespace pagoda::softmax {
namespace {

TEST(ScoreMap, is_scale_then_soft_cap_in_log2_units) {
  for (const float scale : {0.125F, 1.0F, 0.0884F}) {
    for (const float cap : {0.0F, 5.0F, 50.0F}) {
      const ScoreMap map = score_map(scale, cap);
      EXPECT_EQ(map.is_linear(), cap == 0);
      for (int i = -108; i <= 108; ++i) {
        const float product = 3.7F * static_cast<float>(i);
        double s = double{scale} * double{product};
        if (cap != 0) s = double{cap} * std::tanh(s / double{cap});
        const double expected = s / std::log(2.0);
        ASSERT_NEAR(map(product), expected, 4e-7 * std::abs(expected) + 1e-6);
      }
    }
  }
  EXPECT_EQ(score_map(0, 50)(1000), 0.0F);
}

TEST(Alibi, slopes_of_a_power_of_two_are_a_geometric_series) {
  const double expected[] = {0.5, 0.25, 0.125, 0.0625, 0.03125, 0.015625, 0.0078125, 0.00390625};
  for (int32_t h = 0; h < 8; ++h) EXPECT_EQ(alibi_slope(h, 8), static_cast<float>(expected[h]));
  for (int32_t h = 0; h < 16; ++h) {
    EXPECT_NEAR(alibi_slope(h, 16), std::pow(2.0, -0.5 * (h + 1)), 1e-7);
  }
  EXPECT_EQ(alibi_slope(0, 1), 1.0F / 256);
}

TEST(Alibi, other_head_counts_add_every_other_slope_of_the_double) {
  for (const int32_t heads : {3, 5, 12, 40, 71}) {
    int32_t power = 1;
    while (power * 2 < heads) power *= 2;
    for (int32_t h = 0; h < heads; ++h) {
      const double expected = h < power ? std::pow(2.0, -8.0 * (h + 1) / power)
                                        : std::pow(2.0, -8.0 * (2 * (h - power) + 1) / (2 * power));
      ASSERT_NEAR(alibi_slope(h, heads), expected, 1e-6 * expected) << h << " of " << heads;
    }
  }
}

TEST(Alibi, the_bias_is_linear_in_the_distance) {
  const float slope = alibi_slope(2, 12);
  EXPECT_EQ(alibi_bias(slope * kLog2e, 90, 90), 0.0F);
  EXPECT_NEAR(alibi_bias(slope * kLog2e, 10, 90), -80.0 * double{slope} / std::log(2.0), 1e-5);
}

TEST(Exp2Polynomial, relative_error_is_what_the_header_says) {
  double worst = 0;
  for (int i = -126 * 4099; i <= 9 * 4099; ++i) {
    const auto argument = static_cast<float>(i / 4099.0);
    const double exact = std::exp2(double{argument});
    worst = std::max(worst, std::abs(double{exp2_polynomial(argument)} / exact - 1));
  }
  RecordProperty("worst_relative_error", std::to_string(worst));
  EXPECT_LT(worst, 3.1e-6);
  EXPECT_GT(worst, 2.8e-6);  // the bound is the measured one
}

TEST(Exp2Polynomial, is_exact_at_integers_and_zero_below_the_normal_numbers) {
  for (int n = -126; n <= 127; ++n) {
    ASSERT_EQ(exp2_polynomial(static_cast<float>(n)), std::ldexp(1.0F, n));
  }
  EXPECT_EQ(exp2_polynomial(-127), 0.0F);
  EXPECT_EQ(exp2_polynomial(-500), 0.0F);
  EXPECT_EQ(exp2_polynomial(kMinusInfinity), 0.0F);
  for (int i = 1; i <= 100; ++i) {
    const float x = -126.0F - 0.01F * static_cast<float>(i);
    ASSERT_GE(exp2_polynomial(x), 0.0F);
    ASSERT_LT(exp2_polynomial(x), 1.2e-38F);
  }
  EXPECT_TRUE(std::isnan(exp2_polynomial(std::numeric_limits<float>::quiet_NaN())));
}

}  // namespace
}  // namespace pagoda::softmax
