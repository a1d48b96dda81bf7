// The closed forms of visible pairs against counting them one by one.
#include "engine/cost.hpp"

#include <gtest/gtest.h>
#include <random>
#include <utility>
#include <vector>

#include "core/int_math.hpp"

namespace pagoda::engine {
namespace {

bool keeps(const std::vector<MaskNode>& nodes, size_t root, int32_t b, int64_t q, int64_t k) {
  const MaskNode& n = nodes[root];
  switch (n.kind) {
    case MaskKind::kCausal: return k <= q;
    case MaskKind::kWindow:
      return (n.left < 0 || k >= q - n.left) && (n.right < 0 || k <= q + n.right);
    case MaskKind::kChunked: return core::floor_div(k, n.chunk) == core::floor_div(q, n.chunk);
    case MaskKind::kPadding:
      return k < core::host_elements(n.valid_lengths)[static_cast<size_t>(b)];
    case MaskKind::kAnd:
      return keeps(nodes, static_cast<size_t>(n.lhs), b, q, k) &&
             keeps(nodes, static_cast<size_t>(n.rhs), b, q, k);
    default: return true;  // masks that count as if they kept every pair
  }
}

// A batch of one, with one head of 8 + 8 fp32.
struct OneSequence {
  OneSequence(int32_t rows, int32_t keys, int32_t position, Mask mask_)
      : mask(std::move(mask_)), cache_length{position}, keys_{keys} {
    p.batch = p.num_q_heads = p.num_kv_heads = p.group = 1;
    p.head_dim_qk = p.head_dim_vo = 8;
    p.max_seqlen_q = rows;
    p.seqlens_kv = keys_;
    p.cache_lengths = cache_length;
    p.mask = mask.nodes();
  }
  [[nodiscard]] Cost counted() const {
    double pairs = 0, seen_keys = 0;
    for (int64_t k = 0; k < keys_[0]; ++k) {
      double rows = 0;
      for (int64_t i = 0; i < p.max_seqlen_q; ++i) {
        rows += keeps(mask.nodes(), mask.nodes().size() - 1, 0, cache_length[0] + i, k) ? 1 : 0;
      }
      pairs += rows;
      seen_keys += rows > 0 ? 1 : 0;
    }
    return {.flops = 2 * pairs * 16, .kv_bytes = seen_keys * 64};
  }

  Mask mask;
  std::vector<int32_t> cache_length, keys_;
  core::Problem p;
};

Mask random_interval_mask(std::mt19937& random, const std::vector<int32_t>& valid) {
  const auto bound = [&] { return static_cast<int64_t>(random() % 14) - 2; };
  Mask mask;
  const int64_t chunk = 1 + random() % 9;
  for (const auto pick = static_cast<uint32_t>(random()); const int bit : {0, 1, 2, 3, 4, 5}) {
    if ((pick >> bit & 1U) == 0) continue;
    switch (bit) {
      case 0: mask = mask & Mask::causal(); break;
      case 1:
      case 2: mask = mask & Mask::window(bound(), bound()); break;
      case 3: mask = mask & Mask::chunked(chunk); break;
      case 4: mask = mask & Mask::chunked(chunk * (1 + random() % 3)); break;  // nested
      case 5: mask = mask & Mask::padding(valid); break;
      default: break;
    }
  }
  return mask;
}

TEST(Cost, equals_counting_for_every_intersection_of_interval_masks) {
  std::mt19937 random(11);
  for (int round = 0; round < 60000; ++round) {
    const auto rows = static_cast<int32_t>(random() % 20);
    const auto keys = static_cast<int32_t>(random() % 30);
    const auto position = static_cast<int32_t>(random() % 35) - 5;
    const std::vector<int32_t> valid{static_cast<int32_t>(random() % 30)};
    const OneSequence one(rows, keys, position, random_interval_mask(random, valid));
    const Cost closed = cost(one.p), counted = one.counted();
    ASSERT_EQ(closed.flops, counted.flops) << rows << " " << keys << " " << position;
    ASSERT_EQ(closed.kv_bytes, counted.kv_bytes) << rows << " " << keys << " " << position;
  }
}

TEST(Cost, an_or_counts_every_pair) {
  const OneSequence one(4, 10, 6, Mask::window(1, 0) | Mask::chunked(3));
  EXPECT_EQ(cost(one.p).flops, 2 * 40 * 16.0);
  EXPECT_EQ(cost(one.p).kv_bytes, 10 * 64.0);
}

TEST(Cost, the_longest_sequences_do_not_overflow) {
  const int32_t longest = INT32_MAX;
  const OneSequence dense(longest, longest, 0, Mask::none());
  const double n = longest;
  EXPECT_DOUBLE_EQ(cost(dense.p).flops, 32 * n * n);
  const OneSequence causal(longest, longest, 0, Mask::causal());
  EXPECT_DOUBLE_EQ(cost(causal.p).flops, 32 * n * (n + 1) / 2);
  const OneSequence window(longest, longest, 0, Mask::window(0, 0));
  EXPECT_DOUBLE_EQ(cost(window.p).flops, 32 * n);
  const OneSequence chunked(longest, longest, 0, Mask::chunked(1 << 20) & Mask::causal());
  const double chunk = 1 << 20;  // 2047 whole chunks and one key less in the last
  EXPECT_DOUBLE_EQ(cost(chunked.p).flops,
                   32 * (2047 * chunk * (chunk + 1) / 2 + (chunk - 1) * chunk / 2));
  const OneSequence wide(longest, longest, 0, Mask::window(INT32_MAX, INT32_MAX));
  EXPECT_DOUBLE_EQ(cost(wide.p).flops, 32 * n * n);
}

TEST(Cost, heads_groups_and_dtypes_scale_it) {
  OneSequence one(2, 6, 4, Mask::causal());
  one.p.num_q_heads = 6;
  one.p.num_kv_heads = 2;
  one.p.head_dim_qk = 16;
  one.p.k.dtype = one.p.v.dtype = DType::kF8E4M3;
  EXPECT_EQ(cost(one.p).flops, 2.0 * (5 + 6) * 6 * (16 + 8));
  EXPECT_EQ(cost(one.p).kv_bytes, 6.0 * 2 * (16 + 8));
}

}  // namespace
}  // namespace pagoda::engine
