// Content keys: equal exactly where the trace says that prefixes are equal.
#include "cli/replay/content.hpp"

#include <algorithm>
#include <gtest/gtest.h>

namespace pagoda::replay {
namespace {

TraceRequest request(int64_t input_length, std::vector<uint64_t> ids) {
  return {.input_length = input_length, .output_length = 1, .hash_ids = std::move(ids)};
}

TEST(Content, full_blocks_of_an_equal_prefix_have_equal_tokens) {
  const RequestContent a(request(1500, {5, 6, 7}), 0);
  const RequestContent b(request(1200, {5, 6, 8}), 1);
  for (const int64_t position : {0, 511, 512, 1023}) {
    EXPECT_EQ(a.token_key(position), b.token_key(position)) << position;
  }
}

TEST(Content, a_partial_last_block_and_the_output_are_private) {
  const RequestContent a(request(600, {5, 6}), 0);
  const RequestContent b(request(600, {5, 6}), 1);
  for (const int64_t position : {512, 599, 600, 5000}) {
    EXPECT_NE(a.token_key(position), b.token_key(position)) << position;
  }
  EXPECT_EQ(a.page_keys(64).size(), 8U);
}

TEST(Content, the_same_id_behind_another_prefix_is_other_content) {
  const RequestContent a(request(1024, {5, 6}), 0);
  const RequestContent b(request(1024, {4, 6}), 1);
  EXPECT_NE(a.token_key(700), b.token_key(700));
  EXPECT_NE(a.page_keys(64)[10], b.page_keys(64)[10]);
}

TEST(Content, pages_of_any_size_are_shared_only_within_the_common_blocks) {
  for (const int64_t page_size : {1, 16, 17, 64, 100, 512, 700}) {
    const auto a = RequestContent(request(1536, {5, 6, 7}), 0).page_keys(page_size);
    const auto b = RequestContent(request(1536, {5, 6, 9}), 1).page_keys(page_size);
    ASSERT_EQ(std::ssize(a), 1536 / page_size);
    const auto shared = std::mismatch(a.begin(), a.end(), b.begin()).first - a.begin();
    EXPECT_EQ(shared, 1024 / page_size) << page_size;
  }
}

}  // namespace
}  // namespace pagoda::replay
