// Swizzles against their definition as bit fields, and their codes in tensor maps and descriptors.
#include "arch/layout/swizzle.hpp"

#include <gtest/gtest.h>
#include <set>
#include <utility>

namespace pagoda::arch {
namespace {

constexpr Swizzle kAll[] = {Swizzle::kNone, Swizzle::k32B, Swizzle::k64B, Swizzle::k128B,
                            Swizzle::k128BAtom32B};

uint32_t bits(uint32_t value, int first, int last) {
  return value >> first & ((1U << (last - first + 1)) - 1);
}

TEST(Swizzle, xors_the_bits_of_the_manual) {
  for (uint32_t a = 0; a < 8192; ++a) {
    EXPECT_EQ(swizzle_address(a, Swizzle::kNone), a);
    EXPECT_EQ(swizzle_address(a, Swizzle::k32B), a ^ bits(a, 7, 7) << 4);
    EXPECT_EQ(swizzle_address(a, Swizzle::k64B), a ^ bits(a, 7, 8) << 4);
    EXPECT_EQ(swizzle_address(a, Swizzle::k128B), a ^ bits(a, 7, 9) << 4);
    EXPECT_EQ(swizzle_address(a, Swizzle::k128BAtom32B), a ^ bits(a, 7, 8) << 5);
  }
}

TEST(Swizzle, is_its_own_inverse_and_stays_in_its_line) {
  for (const Swizzle swizzle : kAll) {
    for (uint32_t a = 0; a < 4096; ++a) {
      const uint32_t b = swizzle_address(a, swizzle);
      EXPECT_EQ(swizzle_address(b, swizzle), a);
      EXPECT_EQ(a / swizzle_width_bytes(swizzle), b / swizzle_width_bytes(swizzle));
    }
  }
}

TEST(Swizzle, repeats_after_its_repeat_and_not_before) {
  for (const Swizzle swizzle : kAll) {
    const uint32_t repeat = swizzle_repeat_bytes(swizzle);
    const auto differs_after = [&](uint32_t distance) {
      for (uint32_t a = 0; a < 4096; ++a) {
        if (swizzle_address(a + distance, swizzle) != swizzle_address(a, swizzle) + distance) {
          return true;
        }
      }
      return false;
    };
    EXPECT_FALSE(differs_after(repeat));
    EXPECT_EQ(differs_after(repeat / 2), swizzle != Swizzle::kNone);
  }
}

// In every column of 16 (or 32) bytes, the consecutive rows of one period of the pattern lie in
// different chunks of a 128-byte line: no bank conflicts.
TEST(Swizzle, a_column_of_eight_rows_has_no_bank_conflict) {
  for (const auto& [swizzle, chunk] :
       {std::pair{Swizzle::k32B, 16U}, {Swizzle::k64B, 16U}, {Swizzle::k128B, 16U}}) {
    const uint32_t width = swizzle_width_bytes(swizzle);
    for (uint32_t column = 0; column < width; column += chunk) {
      std::set<uint32_t> chunks;
      for (uint32_t row = 0; row < 8; ++row) {
        chunks.insert(swizzle_address(row * width + column, swizzle) % 128 / 16);
      }
      EXPECT_EQ(chunks.size(), 8U);
    }
  }
}

TEST(Swizzle, base_offset_moves_the_start_of_the_pattern) {
  for (const Swizzle swizzle : kAll) {
    for (uint32_t base = 0; base < 8; ++base) {
      for (uint32_t a = 0; a < 2048; a += 16) {
        const uint32_t moved = a + base * 128;
        EXPECT_EQ(swizzle_address(moved, swizzle, base), swizzle_address(a, swizzle) + base * 128);
      }
    }
  }
}

TEST(Swizzle, codes_are_those_of_the_manuals) {
  EXPECT_EQ(tensor_map_code(Swizzle::kNone), 0U);
  EXPECT_EQ(tensor_map_code(Swizzle::k32B), 1U);
  EXPECT_EQ(tensor_map_code(Swizzle::k64B), 2U);
  EXPECT_EQ(tensor_map_code(Swizzle::k128B), 3U);
  EXPECT_EQ(tensor_map_code(Swizzle::k128BAtom32B), 4U);
  EXPECT_EQ(sm100_code(Swizzle::k128BAtom32B), 1U);
  EXPECT_EQ(sm90_code(Swizzle::k128BAtom32B), kNoSwizzleCode);
  for (const auto& [swizzle, code] : {std::pair{Swizzle::kNone, 0U},
                                      {Swizzle::k128B, 1U},
                                      {Swizzle::k64B, 2U},
                                      {Swizzle::k32B, 3U}}) {
    EXPECT_EQ(sm90_code(swizzle), code);
    EXPECT_EQ(sm100_code(swizzle), 2 * code);  // one bit more to the right
  }
}

}  // namespace
}  // namespace pagoda::arch
