// The block manager: sharing, eviction order, and a random walk against a simple model.
#include "cli/replay/block_manager.hpp"

#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <random>

namespace pagoda::replay {
namespace {

using Keys = std::vector<uint64_t>;

std::vector<int32_t> allocate_and_publish(BlockManager& blocks, const Keys& keys) {
  auto pages = blocks.allocate(std::ssize(keys));
  EXPECT_TRUE(pages.has_value());
  for (size_t i = 0; i < keys.size(); ++i) blocks.publish((*pages)[i], keys[i]);
  return *pages;
}

TEST(BlockManager, a_published_prefix_is_shared_while_it_is_held) {
  BlockManager blocks(8);
  const auto first = allocate_and_publish(blocks, {1, 2, 3});
  EXPECT_EQ(blocks.find_prefix(Keys{1, 2, 9, 3}), 2);
  EXPECT_EQ(blocks.count_cached(Keys{1, 2}), 0);
  const auto second = blocks.share(Keys{1, 2});
  EXPECT_EQ(second, (std::vector<int32_t>{first[0], first[1]}));
  EXPECT_EQ(blocks.references(first[0]), 2);
  EXPECT_EQ(blocks.held_pages(), 3);
  blocks.release(first);
  EXPECT_EQ(blocks.held_pages(), 2);
  EXPECT_EQ(blocks.cached_pages(), 1);
  EXPECT_EQ(blocks.find_defect(), "");
}

TEST(BlockManager, a_released_prefix_survives_until_space_is_needed) {
  BlockManager blocks(4);
  blocks.release(allocate_and_publish(blocks, {1, 2, 3}));
  EXPECT_EQ(blocks.available_pages(), 4);
  EXPECT_EQ(blocks.find_prefix(Keys{1, 2, 3}), 3);
  ASSERT_TRUE(blocks.allocate(2).has_value());  // the free page, then one eviction
  EXPECT_EQ(blocks.evictions(), 1);
  EXPECT_EQ(blocks.find_prefix(Keys{1, 2, 3}), 2) << "the tail goes first";
  EXPECT_EQ(blocks.find_defect(), "");
}

TEST(BlockManager, the_least_recently_released_content_is_evicted_first) {
  BlockManager blocks(3);
  const auto a = allocate_and_publish(blocks, {1});
  const auto b = allocate_and_publish(blocks, {2});
  const auto c = allocate_and_publish(blocks, {3});
  blocks.release(b);
  blocks.release(a);
  blocks.release(c);
  blocks.release(blocks.share(Keys{2}));  // used again: now the newest
  ASSERT_TRUE(blocks.allocate(1).has_value());
  EXPECT_EQ(blocks.find_prefix(Keys{1}), 0);
  EXPECT_EQ(blocks.find_prefix(Keys{3}), 1);
  EXPECT_EQ(blocks.find_prefix(Keys{2}), 1);
}

TEST(BlockManager, held_pages_are_never_evicted_and_a_failed_allocation_changes_nothing) {
  BlockManager blocks(4);
  const auto held = allocate_and_publish(blocks, {1, 2});
  blocks.release(allocate_and_publish(blocks, {3}));
  EXPECT_FALSE(blocks.allocate(3).has_value());
  EXPECT_EQ(blocks.evictions(), 0);
  EXPECT_EQ(blocks.find_prefix(Keys{3}), 1);
  EXPECT_TRUE(blocks.allocate(2).has_value());
  EXPECT_FALSE(blocks.allocate(1).has_value());
  EXPECT_EQ(blocks.find_prefix(Keys{1, 2}), 2);
}

TEST(BlockManager, equal_content_computed_twice_is_published_once) {
  BlockManager blocks(2);
  const auto a = allocate_and_publish(blocks, {7});
  const auto b = allocate_and_publish(blocks, {7});
  EXPECT_EQ(blocks.share(Keys{7}), a);
  blocks.release(b);
  EXPECT_EQ(blocks.cached_pages(), 0) << "the duplicate is free at once";
  EXPECT_EQ(blocks.find_defect(), "");
}

// Sequences of random prefixes of a small tree of contents come and go; a model counts references.
TEST(BlockManager, random_use_keeps_every_invariant) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    std::mt19937_64 random(seed);
    const auto below = [&](uint64_t n) { return random() % n; };
    BlockManager blocks(static_cast<int32_t>(8 + below(40)));
    std::vector<std::vector<int32_t>> sequences;
    std::map<int32_t, int32_t> expected;
    for (int step = 0; step < 2000; ++step) {
      if (!sequences.empty() && below(3) == 0) {
        const size_t victim = below(sequences.size());
        for (const int32_t page : sequences[victim]) --expected[page];
        blocks.release(sequences[victim]);
        sequences.erase(sequences.begin() + static_cast<int64_t>(victim));
      } else {
        Keys keys;  // content of a page depends on all before it
        uint64_t chain = 1;
        for (uint64_t i = below(9); i > 0; --i) keys.push_back(chain = chain * 3 + below(2));
        const auto hits = blocks.find_prefix(keys);
        const std::span<const uint64_t> known(keys.data(), static_cast<size_t>(hits));
        const int64_t fresh = std::ssize(keys) - hits;
        if (fresh > blocks.available_pages() - blocks.count_cached(known)) continue;
        auto pages = blocks.share(known);
        const auto more = blocks.allocate(fresh);
        ASSERT_TRUE(more.has_value());
        for (const int32_t page : *more) ASSERT_EQ(expected[page], 0) << "a page in use was given";
        pages.insert(pages.end(), more->begin(), more->end());
        for (size_t i = known.size(); i < keys.size(); ++i) {
          if (below(4) != 0) blocks.publish(pages[i], keys[i]);
        }
        for (const int32_t page : pages) ++expected[page];
        sequences.push_back(std::move(pages));
      }
      ASSERT_EQ(blocks.find_defect(), "") << "seed " << seed << " step " << step;
      for (const auto& [page, count] : expected) ASSERT_EQ(blocks.references(page), count);
    }
    EXPECT_GT(blocks.evictions(), 0) << "seed " << seed << " never filled the cache";
  }
}

}  // namespace
}  // namespace pagoda::replay
