// Reasons are distinguished by their words, not by their numbers.
#include "cli/skip_reasons.hpp"

#include <gtest/gtest.h>

namespace pagoda::cli {
namespace {

TEST(SkipReasons, that_differ_in_numbers_only_are_one_and_the_most_frequent_comes_first) {
  SkipReasons reasons;
  reasons.add("a mask calls the host", "first");
  reasons.add("head_dim is 512; at most 256", "second");
  reasons.add("head_dim is 8; at most 256", "third");
  const std::vector<SkipReason> list = reasons.sorted();
  ASSERT_EQ(list.size(), 2U);
  EXPECT_EQ(list[0].count, 2);
  EXPECT_EQ(list[0].text, "head_dim is 512; at most 256");
  EXPECT_EQ(list[0].example, "second");
  EXPECT_EQ(list[1].count, 1);
}

TEST(SkipReasons, of_a_selection_are_those_of_the_closest_kernel) {
  SkipReasons reasons;
  reasons.add(
      "no kernel can serve this call: a.d64: head dims 80 x 80 exceed 64 x 64 (the closest of 9 "
      "kernels; explain() lists all)",
      "one");
  EXPECT_EQ(reasons.sorted()[0].text, "head dims 80 x 80 exceed 64 x 64");
}

}  // namespace
}  // namespace pagoda::cli
