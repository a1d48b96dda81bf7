// Intervals of expressions against a pair-by-pair definition of each mask.
#include "mask/expression.hpp"

#include <cstdint>
#include <gtest/gtest.h>
#include <optional>
#include <random>
#include <vector>

#include "testing/material/run_on_machine.hpp"

namespace pagoda::mask {
namespace {

// Written from the comments of pagoda/mask.hpp, independent of expression.hpp.
bool keeps(const std::vector<MaskNode>& nodes, size_t root, int32_t sequence, int64_t q,
           int64_t k) {
  const MaskNode& n = nodes[root];
  switch (n.kind) {
    case MaskKind::kCausal: return k <= q;
    case MaskKind::kWindow:
      return (n.left < 0 || k >= q - n.left) && (n.right < 0 || k <= q + n.right);
    case MaskKind::kChunked: {
      const auto chunk_of = [&](int64_t x) {
        int64_t c = 0;
        while (c * n.chunk > x) --c;
        while ((c + 1) * n.chunk <= x) ++c;
        return c;
      };
      return chunk_of(q) == chunk_of(k);
    }
    case MaskKind::kPadding:
      return k < core::host_elements(n.valid_lengths)[static_cast<size_t>(sequence)];
    case MaskKind::kAnd:
      return keeps(nodes, static_cast<size_t>(n.lhs), sequence, q, k) &&
             keeps(nodes, static_cast<size_t>(n.rhs), sequence, q, k);
    case MaskKind::kOr:
      return keeps(nodes, static_cast<size_t>(n.lhs), sequence, q, k) ||
             keeps(nodes, static_cast<size_t>(n.rhs), sequence, q, k);
    default: return true;
  }
}

class Masks {
 public:
  explicit Masks(uint32_t seed) : rng_(seed) {}

  Mask leaf() {
    switch (below(5)) {
      case 0: return Mask::none();
      case 1: return Mask::causal();
      case 2: return Mask::window(below(30) - 1, below(30) - 1);
      case 3: return Mask::chunked(1 + below(20));
      default: return Mask::padding(lengths_);
    }
  }
  // The array that padding masks point to.
  [[nodiscard]] emulator::GlobalBuffer lengths() const {
    return emulator::input("lengths", lengths_.data(), lengths_.size());
  }
  int32_t below(int32_t n) { return static_cast<int32_t>(rng_() % static_cast<uint32_t>(n)); }

 private:
  std::mt19937 rng_;
  std::vector<int32_t> lengths_ = {13, 0, 100};
};

TEST(Expression, is_exact_for_leaves_and_intersections) {
  Masks masks(1);
  for (int i = 0; i < 300; ++i) {
    const Mask mask = i % 2 == 0 ? masks.leaf() : masks.leaf() & masks.leaf();
    const auto& nodes = mask.nodes();
    ASSERT_TRUE(is_interval(nodes));
    const int32_t sequence = masks.below(3);
    const int32_t seqlen_kv = masks.below(60);
    for (int32_t q = -20; q < 70; ++q) {
      const Interval keys = visible_interval(nodes, sequence, q, seqlen_kv);
      for (int64_t k = 0; k < seqlen_kv; ++k) {
        ASSERT_EQ(keys.lo <= k && k < keys.hi, keeps(nodes, nodes.size() - 1, sequence, q, k))
            << "case " << i << " q " << q << " k " << k;
      }
    }
  }
}

TEST(Expression, contains_every_key_that_a_union_keeps) {
  Masks masks(2);
  for (int i = 0; i < 300; ++i) {
    const Mask mask = (masks.leaf() & masks.leaf()) | masks.leaf();
    ASSERT_FALSE(is_interval(mask.nodes()));
    for (int32_t q = -5; q < 60; ++q) {
      const Interval keys = visible_interval(mask.nodes(), 2, q, 50);
      for (int64_t k = 0; k < 50; ++k) {
        if (keeps(mask.nodes(), mask.nodes().size() - 1, 2, q, k)) {
          ASSERT_TRUE(keys.lo <= k && k < keys.hi) << "case " << i << " q " << q << " k " << k;
        }
      }
    }
  }
}

TEST(Expression, both_bounds_grow_with_the_position) {
  Masks masks(3);
  for (int i = 0; i < 300; ++i) {
    const Mask mask = (masks.leaf() & masks.leaf()) | masks.leaf();
    Interval before = visible_interval(mask.nodes(), 0, -30, 40);
    for (int32_t q = -29; q < 80; ++q) {
      const Interval keys = visible_interval(mask.nodes(), 0, q, 40);
      ASSERT_GE(keys.lo, before.lo);
      ASSERT_GE(keys.hi, before.hi);
      before = keys;
    }
  }
}

TEST(Expression, huge_bounds_do_not_overflow) {
  const Mask mask = Mask::window(INT64_MAX, INT64_MAX) & Mask::chunked(INT64_MAX);
  const Interval keys = visible_interval(mask.nodes(), 0, INT32_MAX - 1, INT32_MAX);
  EXPECT_EQ(keys.lo, 0);
  EXPECT_EQ(keys.hi, INT32_MAX);
}

TEST(Expression, one_rule_says_the_same_as_the_tree) {
  Masks masks(4);
  int rules = 0;
  const auto compare = [&](int i) {
    const Mask mask = masks.leaf() & masks.leaf() & masks.leaf();
    const std::optional<IntervalMask> rule = interval_mask(mask.nodes());
    if (!rule) return;
    ++rules;
    for (int32_t q = -20; q < 70; ++q) {
      const Interval tree = visible_interval(mask.nodes(), 1, q, 45);
      const RowTile tile{
          .sequence = 1, .seqlen_kv = 45, .q_position = q, .first_row = 0, .num_rows = 1};
      const Interval keys = rule->visible(tile, 0);
      ASSERT_EQ(keys.empty(), tree.empty()) << "case " << i << " q " << q;
      if (tree.empty()) continue;
      ASSERT_EQ(keys.lo, tree.lo) << "case " << i << " q " << q;
      ASSERT_EQ(keys.hi, tree.hi) << "case " << i << " q " << q;
    }
  };
  const emulator::Result result = emulator::run_on_machine({masks.lengths()}, [&] {
    for (int i = 0; i < 600 && !HasFailure(); ++i) compare(i);
  });
  EXPECT_TRUE(result.is_clean());
  EXPECT_GT(rules, 300);
}

TEST(Expression, what_is_no_single_rule_is_refused) {
  const std::vector<int32_t> a = {3}, b = {4};
  EXPECT_FALSE(interval_mask((Mask::causal() | Mask::window(3, 3)).nodes()));
  EXPECT_FALSE(interval_mask((Mask::chunked(4) & Mask::chunked(6)).nodes()));
  EXPECT_FALSE(interval_mask((Mask::padding(a) & Mask::padding(b)).nodes()));
  EXPECT_EQ(interval_mask((Mask::chunked(12) & Mask::chunked(4)).nodes())->rule.chunk, 4);
  EXPECT_EQ(interval_mask((Mask::padding(a) & Mask::padding(a)).nodes())->valid_lengths, a.data());
}

TEST(Expression, the_rule_of_a_conjunction_encloses_masks_that_are_no_interval) {
  const std::vector<uint32_t> words(8, 0xffffffffU);
  const std::vector<int64_t> offsets = {0, 8};
  const Mask mask = Mask::bits(words, offsets) & Mask::window(5, 0);
  const std::optional<IntervalMask> rule = interval_mask(mask.nodes());
  ASSERT_TRUE(rule);
  EXPECT_EQ(rule->rule.left, 5);
  EXPECT_EQ(rule->rule.right, 0);
}

}  // namespace
}  // namespace pagoda::mask
