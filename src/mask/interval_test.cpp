// The rule of one row against the definition of each mask, including bounds near INT32_MIN and MAX.
#include "mask/interval.hpp"

#include <cstdint>
#include <gtest/gtest.h>
#include <random>

namespace pagoda::mask {
namespace {

// Written from the comments of pagoda/mask.hpp, in 64 bits.
bool sees(const IntervalRule& rule, int64_t q, int64_t k) {
  if (rule.left != IntervalRule::kOpen && k < q - rule.left) return false;
  if (rule.right != IntervalRule::kOpen && k > q + rule.right) return false;
  if (rule.chunk == 0) return true;
  const auto chunk_of = [&](int64_t x) {
    return x >= 0 ? x / rule.chunk : -((-x + rule.chunk - 1) / rule.chunk);
  };
  return chunk_of(q) == chunk_of(k);
}

TEST(IntervalRule, keeps_exactly_the_keys_of_the_definition) {
  std::mt19937 rng(11);
  const auto below = [&](uint32_t n) { return static_cast<int32_t>(rng() % n); };
  for (int i = 0; i < 500; ++i) {
    IntervalRule rule;
    if (below(2) != 0) rule.left = below(30);
    if (below(2) != 0) rule.right = below(30);
    if (below(2) != 0) rule.chunk = 1 + below(30);
    const int32_t num_keys = below(60);
    for (int32_t q = -40; q < 100; ++q) {
      const Interval keys = rule.visible(q, num_keys);
      ASSERT_LE(keys.lo, keys.hi);
      for (int32_t k = 0; k < num_keys; ++k) {
        ASSERT_EQ(keys.contains(k), sees(rule, q, k)) << "q " << q << " k " << k;
      }
      ASSERT_GE(keys.lo, 0);
      ASSERT_LE(keys.hi, num_keys);
    }
  }
}

TEST(IntervalRule, does_not_overflow_at_the_ends_of_32_bits) {
  const int32_t values[] = {0, 1, 2, 1000, 1 << 30, 1500000000, INT32_MAX - 1, INT32_MAX};
  const int32_t positions[] = {INT32_MIN, INT32_MIN + 1, -1500000000,   -1,       0, 1,
                               1000,      1500000000,    INT32_MAX - 1, INT32_MAX};
  for (const int32_t left : values) {
    for (const int32_t right : values) {
      for (const int32_t chunk : values) {
        for (const int32_t num_keys : values) {
          for (const int32_t q : positions) {
            const IntervalRule rule{left, right, chunk};
            const Interval keys = rule.visible(q, num_keys);
            ASSERT_LE(0, keys.lo);
            ASSERT_LE(keys.lo, keys.hi);
            ASSERT_LE(keys.hi, num_keys);
            // The bounds, and the keys just outside.
            const auto expect = [&](int64_t k) {
              if (k < 0 || k >= num_keys) return;
              ASSERT_EQ(keys.contains(static_cast<int32_t>(k)), sees(rule, q, k))
                  << "left " << left << " right " << right << " chunk " << chunk << " q " << q
                  << " k " << k << " keys " << num_keys;
            };
            for (const int64_t k : {int64_t{keys.lo} - 1, int64_t{keys.lo}, int64_t{keys.hi} - 1,
                                    int64_t{keys.hi}, int64_t{0}, int64_t{num_keys} - 1}) {
              expect(k);
            }
          }
        }
      }
    }
  }
}

TEST(Interval, keep_words_are_the_element_test) {
  for (int32_t lo = 0; lo < 80; lo += 3) {
    for (int32_t hi = lo; hi < 100; hi += 7) {
      for (int32_t column = 0; column < 120; ++column) {
        const uint32_t keep = Interval{lo, hi}.keep32(column);
        for (int32_t i = 0; i < 32; ++i) {
          ASSERT_EQ((keep >> static_cast<uint32_t>(i) & 1U) != 0,
                    lo <= column + i && column + i < hi);
        }
      }
    }
  }
  EXPECT_EQ((Interval{0, INT32_MAX}.keep32(INT32_MAX - 3)), 7U);
}

}  // namespace
}  // namespace pagoda::mask
