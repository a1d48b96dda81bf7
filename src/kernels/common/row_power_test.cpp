// RowPower: rows of bf16 numbers of every magnitude fit f16, and their scores get the inverse.
#include "kernels/common/row_power.hpp"

#include <cmath>
#include <cstdint>
#include <gtest/gtest.h>
#include <limits>

#include "core/element.hpp"

namespace pagoda::kernels {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

uint32_t pair_of(float low, float high) {
  return static_cast<uint32_t>(core::float_to_bf16(low)) |
         static_cast<uint32_t>(core::float_to_bf16(high)) << 16U;
}

float low_of(uint32_t f16_pair) {
  return core::f16_to_float(static_cast<uint16_t>(f16_pair & 0xffffU));
}
float high_of(uint32_t f16_pair) {
  return core::f16_to_float(static_cast<uint16_t>(f16_pair >> 16U));
}

TEST(RowPower, makes_the_largest_element_fit_f16_and_has_an_exact_inverse) {
  for (int exponent = -149; exponent <= 127; ++exponent) {
    for (const float mantissa : {1.0F, 1.2578125F, 1.9921875F}) {
      const float largest = std::ldexp(mantissa, exponent);
      const RowPower power = RowPower::of(largest);
      ASSERT_EQ(power.factor * power.inverse, 1) << largest;
      ASSERT_TRUE(std::isnormal(power.inverse)) << largest;
      ASSERT_LT(largest * power.factor, 0x1p15F) << largest;
      // Below 2^-112 the inverse would not be a normal number.
      if (exponent >= -112) {
        ASSERT_GE(largest * power.factor, 0x1p14F) << largest;
      }
    }
  }
}

TEST(RowPower, is_one_where_no_element_decides) {
  EXPECT_EQ(RowPower::of(0).factor, 1);
  EXPECT_EQ(RowPower::of(kNaN).factor, 1);
  const RowPower power = RowPower::of(kInfinity);
  EXPECT_TRUE(power.factor > 0 && std::isfinite(power.factor));
  EXPECT_TRUE(power.inverse > 0 && std::isfinite(power.inverse));
}

TEST(RowPower, elements_keep_their_bits_down_to_2_to_the_minus_28_of_the_largest) {
  for (const float largest : {0x1p-90F, 3.0F, 0x1.8p100F}) {
    const RowPower power = RowPower::of(largest);
    for (int down = 0; down <= 28; ++down) {
      const float element = std::ldexp(-0.99609375F, std::ilogb(largest) - down);  // eight bits
      const uint32_t f16 = scaled_to_f16(pair_of(element, largest), power.factor);
      ASSERT_EQ(low_of(f16) * power.inverse, element) << largest << " " << down;
      ASSERT_EQ(high_of(f16) * power.inverse, largest) << largest << " " << down;
    }
  }
}

TEST(RowPower, infinity_and_nan_stay_what_they_are) {
  LargestOfPairs largest;
  largest.add(pair_of(-kInfinity, 2));
  EXPECT_EQ(largest.value(), kInfinity);
  EXPECT_EQ(low_of(scaled_to_f16(pair_of(-kInfinity, 2), RowPower::of(kInfinity).factor)),
            -kInfinity);
  largest.add(pair_of(1, kNaN));
  EXPECT_TRUE(std::isnan(largest.value()));
  EXPECT_TRUE(std::isnan(high_of(scaled_to_f16(pair_of(1, kNaN), 1))));
}

TEST(LargestOfPairs, finds_the_largest_magnitude_in_either_half) {
  LargestOfPairs none;
  EXPECT_EQ(none.value(), 0);
  none.add(pair_of(-0.0F, 0));
  EXPECT_EQ(none.value(), 0);
  LargestOfPairs low, high;
  low.add(pair_of(-7, 3));
  low.add(pair_of(6.5F, -6));
  EXPECT_EQ(low.value(), 7);
  high.add(pair_of(1, 3));
  high.add(pair_of(2, -4.5F));
  EXPECT_EQ(high.value(), 4.5F);
}

}  // namespace
}  // namespace pagoda::kernels
