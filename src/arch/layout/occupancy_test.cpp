// shared_bytes_for: on chips with 100, 164 and 228 KB, and that it adds nothing in vain.
#include "arch/layout/occupancy.hpp"

#include <algorithm>
#include <cstdint>
#include <gtest/gtest.h>

namespace pagoda::arch {
namespace {

constexpr int32_t kKB = 1024;

int32_t most_ctas_of(int32_t bytes, int32_t per_sm) { return per_sm / (bytes + kKB); }

TEST(Occupancy, shared_memory_limits_the_ctas_of_a_multiprocessor) {
  for (const int32_t per_sm : {100 * kKB, 164 * kKB, 228 * kKB}) {
    for (const int32_t bytes : {8 * kKB, 37'504, 72'320, 96 * kKB}) {
      const int32_t natural = most_ctas_of(bytes, per_sm);
      for (int32_t most = 1; most <= 12; ++most) {
        const int32_t padded = shared_bytes_for(bytes, most, per_sm, kKB);
        EXPECT_GE(padded, bytes);
        EXPECT_EQ(most_ctas_of(padded, per_sm), std::min(natural, most))
            << bytes << " of " << per_sm << ", at most " << most;
      }
    }
  }
}

TEST(Occupancy, nothing_is_added_where_no_more_fit) {
  EXPECT_EQ(shared_bytes_for(72'320, 2, 164 * kKB, kKB), 72'320);  // sm_80
  EXPECT_EQ(shared_bytes_for(72'320, 3, 228 * kKB, kKB), 72'320);  // sm_90
  EXPECT_GT(shared_bytes_for(72'320, 2, 228 * kKB, kKB), 72'320);
}

}  // namespace
}  // namespace pagoda::arch
