// Conversions of stored elements: every code, and rounding against a search for the nearest code.
#include "core/element.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <vector>

namespace pagoda::core {
namespace {

// A format as its definition has it: sign, exponent and mantissa of a code, without bit tricks.
struct Format {
  int exponent_bits, mantissa_bits, bias;
  bool has_infinity;  // IEEE: the top exponent is infinity or NaN; e4m3: only mantissa 7 is NaN

  [[nodiscard]] uint32_t sign_bit() const { return 1U << (exponent_bits + mantissa_bits); }
  [[nodiscard]] bool is_nan(uint32_t code) const {
    const uint32_t top = (1U << exponent_bits) - 1, magnitude = code & (sign_bit() - 1);
    if (!has_infinity) return magnitude == sign_bit() - 1;
    return magnitude > top << mantissa_bits;
  }
  // Infinity's code counts as the next power of two: what rounding to nearest compares with.
  [[nodiscard]] double magnitude(uint32_t code) const {
    const auto exponent = static_cast<int>((code & (sign_bit() - 1)) >> mantissa_bits);
    const double mantissa = code & ((1U << mantissa_bits) - 1);
    if (exponent == 0) return std::ldexp(mantissa, 1 - bias - mantissa_bits);
    return std::ldexp(mantissa + (1U << mantissa_bits), exponent - bias - mantissa_bits);
  }
  [[nodiscard]] uint32_t largest_code() const {  // infinity where there is one
    return has_infinity ? ((1U << exponent_bits) - 1) << mantissa_bits : sign_bit() - 2;
  }
};

constexpr Format kHalf{5, 10, 15, true}, kBfloat{8, 7, 127, true}, kFp8{4, 3, 7, false};

uint32_t nearest_even(const Format& format, const std::vector<double>& magnitudes, float value) {
  const double x = std::abs(double{value});
  const uint32_t sign = std::signbit(value) ? format.sign_bit() : 0;
  if (x >= magnitudes.back()) return sign | format.largest_code();
  const auto above = static_cast<uint32_t>(
      std::upper_bound(magnitudes.begin(), magnitudes.end(), x) - magnitudes.begin());
  const uint32_t below = above - 1;
  const double up = magnitudes[above] - x, down = x - magnitudes[below];
  if (up == down) return sign | (below % 2 == 0 ? below : above);
  return sign | (up < down ? above : below);
}

template <typename Decode, typename Encode>
void check_every_code(const Format& format, Decode decode, Encode encode) {
  for (uint32_t code = 0; code < 2 * format.sign_bit(); ++code) {
    const float value = decode(code);
    ASSERT_EQ(std::isnan(value), format.is_nan(code)) << code;
    const uint32_t again = encode(value);
    if (format.is_nan(code)) {
      ASSERT_TRUE(format.is_nan(again)) << code;
      ASSERT_EQ(again & format.sign_bit(), code & format.sign_bit());
      continue;
    }
    ASSERT_EQ(again, code);
    const bool is_infinite =
        format.has_infinity && (code & (format.sign_bit() - 1)) == format.largest_code();
    ASSERT_EQ(std::isinf(value), is_infinite) << code;
    if (is_infinite) continue;
    ASSERT_EQ(std::abs(double{value}), format.magnitude(code)) << code;
    ASSERT_EQ(std::signbit(value), (code & format.sign_bit()) != 0) << code;
  }
}

template <typename Encode>
void check_rounding(const Format& format, Encode encode) {
  std::vector<double> magnitudes;
  for (uint32_t code = 0; code <= format.largest_code(); ++code) {
    magnitudes.push_back(format.magnitude(code));
  }
  const auto check = [&](float value) {
    ASSERT_EQ(encode(value), nearest_even(format, magnitudes, value)) << std::hexfloat << value;
    ASSERT_EQ(encode(-value), nearest_even(format, magnitudes, -value)) << std::hexfloat << -value;
  };
  for (size_t i = 0; i + 1 < magnitudes.size(); ++i) {  // at, and on either side of, every midpoint
    const auto middle = static_cast<float>((magnitudes[i] + magnitudes[i + 1]) / 2);
    check(middle);
    check(std::nextafter(middle, 0.0F));
    if (middle < std::numeric_limits<float>::max()) check(std::nextafter(middle, 2 * middle));
  }
  std::mt19937 random(7);
  for (int i = 0; i < 400000; ++i) {
    const auto value = std::bit_cast<float>(static_cast<uint32_t>(random()));
    if (std::isfinite(value)) check(value);
  }
  check(std::numeric_limits<float>::max());
  check(std::numeric_limits<float>::denorm_min());
}

uint32_t encode_f16(float x) { return float_to_f16(x); }
uint32_t encode_bf16(float x) { return float_to_bf16(x); }
uint32_t encode_fp8(float x) { return float_to_f8e4m3(x); }

TEST(Element, every_fp16_code_has_its_value_and_comes_back) {
  check_every_code(
      kHalf, [](uint32_t c) { return f16_to_float(static_cast<uint16_t>(c)); }, encode_f16);
}
TEST(Element, every_bf16_code_has_its_value_and_comes_back) {
  check_every_code(
      kBfloat, [](uint32_t c) { return bf16_to_float(static_cast<uint16_t>(c)); }, encode_bf16);
}
TEST(Element, every_fp8_code_has_its_value_and_comes_back) {
  check_every_code(
      kFp8, [](uint32_t c) { return f8e4m3_to_float(static_cast<uint8_t>(c)); }, encode_fp8);
}

TEST(Element, fp16_rounds_to_the_nearest_even_code) { check_rounding(kHalf, encode_f16); }
TEST(Element, bf16_rounds_to_the_nearest_even_code) { check_rounding(kBfloat, encode_bf16); }
TEST(Element, fp8_rounds_to_the_nearest_even_code_and_saturates) {
  check_rounding(kFp8, encode_fp8);
}

TEST(Element, every_nan_stays_nan) {
  for (const uint32_t bits : {0x7fc00000U, 0x7f800001U, 0xff800001U, 0xffffffffU, 0x7fbfffffU}) {
    const auto nan = std::bit_cast<float>(bits);
    EXPECT_TRUE(std::isnan(f16_to_float(float_to_f16(nan))));
    EXPECT_TRUE(std::isnan(bf16_to_float(float_to_bf16(nan))));
    EXPECT_TRUE(std::isnan(f8e4m3_to_float(float_to_f8e4m3(nan))));
  }
}

TEST(Element, infinity_stays_or_saturates) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(float_to_f16(infinity), 0x7c00);
  EXPECT_EQ(float_to_f16(-infinity), 0xfc00);
  EXPECT_EQ(float_to_bf16(infinity), 0x7f80);
  EXPECT_EQ(float_to_bf16(-infinity), 0xff80);
  EXPECT_EQ(float_to_f8e4m3(infinity), 0x7e);
  EXPECT_EQ(float_to_f8e4m3(-infinity), 0xfe);
}

TEST(Element, load_and_store_use_the_dtype_at_the_index) {
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16, DType::kF8E4M3}) {
    std::array<std::byte, 16> memory{};
    store_element(memory.data(), dtype, 2, -1.5F);
    EXPECT_EQ(load_element(memory.data(), dtype, 2), -1.5F) << name(dtype);
    EXPECT_EQ(load_element(memory.data(), dtype, 1), 0.0F) << name(dtype);
    EXPECT_EQ(load_element(memory.data(), dtype, 3), 0.0F) << name(dtype);
  }
}

}  // namespace
}  // namespace pagoda::core
