// Every output row is computed once over all its visible keys, however the work is split.
#include "schedule/work_list.hpp"

#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <random>
#include <tuple>
#include <vector>

#include "mask/expression.hpp"

namespace pagoda::schedule {
namespace {

struct Batch {
  std::vector<int32_t> cu_q{0}, kv;
  Mask mask;
  core::Problem problem;

  Batch(const std::vector<std::pair<int32_t, int32_t>>& lengths, int32_t group, int32_t kv_heads,
        Mask m)
      : mask(std::move(m)) {
    for (const auto& [q, k] : lengths) {
      cu_q.push_back(cu_q.back() + q);
      kv.push_back(k);
      problem.max_seqlen_q = std::max(problem.max_seqlen_q, q);
    }
    problem.batch = static_cast<int32_t>(lengths.size());
    problem.group = group;
    problem.num_kv_heads = kv_heads;
    problem.num_q_heads = group * kv_heads;
    problem.is_ragged = true;
    problem.cu_seqlens_q = cu_q;
    problem.seqlens_kv = kv;
    problem.mask = mask.nodes();
  }
};

std::vector<std::pair<int32_t, int32_t>> random_lengths(std::mt19937& rng, int n) {
  std::vector<std::pair<int32_t, int32_t>> lengths;
  for (int i = 0; i < n; ++i) {
    const auto q = static_cast<int32_t>(rng() % 3 == 0 ? 1 : rng() % 900);
    lengths.emplace_back(q, static_cast<int32_t>(rng() % 9000));
  }
  return lengths;
}

void expect_complete(const Batch& batch, const WorkShape& shape) {
  const WorkList list = make_work_list(batch.problem, shape);
  // (sequence, token, head) -> the key ranges of its items.
  std::map<std::tuple<int32_t, int32_t, int32_t>, std::vector<std::pair<int32_t, int32_t>>> seen;
  std::map<int32_t, int32_t> splits_of;
  std::vector<int> partial_owners(static_cast<size_t>(list.num_partial_rows));
  for (const WorkItem& item : list.items) {
    ASSERT_LE(item.rows(), shape.max_rows);
    ASSERT_GT(item.rows(), 0);
    for (int32_t t = 0; t < item.token_count; ++t) {
      for (int32_t h = 0; h < item.head_count; ++h) {
        seen[{item.sequence, item.token_begin + t, item.head_begin + h}].emplace_back(
            item.key_begin, item.key_end);
      }
    }
    if (item.num_splits > 1) {
      ++splits_of[item.merge_group];
      for (int32_t r = 0; r < item.rows(); ++r) {
        ++partial_owners.at(static_cast<size_t>(item.partial_row + r));
      }
    } else {
      ASSERT_EQ(item.merge_group, -1);
    }
  }
  for (const int owners : partial_owners) ASSERT_EQ(owners, 1);
  ASSERT_EQ(splits_of.size(), static_cast<size_t>(list.num_merge_groups));
  for (const WorkItem& item : list.items) {
    if (item.num_splits > 1) {
      ASSERT_EQ(splits_of[item.merge_group], item.num_splits);
    }
  }
  const core::Problem& p = batch.problem;
  for (int32_t b = 0; b < p.batch; ++b) {
    for (int32_t t = 0; t < p.seqlen_q(b); ++t) {
      const mask::Interval keys =
          mask::visible_interval(p.mask, b, p.q_position(b) + t, p.seqlen_kv(b));
      for (int32_t h = 0; h < p.group; ++h) {
        auto& ranges = seen[{b, t, h}];
        ASSERT_FALSE(ranges.empty());
        std::sort(ranges.begin(), ranges.end());
        for (size_t i = 1; i < ranges.size(); ++i) {
          ASSERT_EQ(ranges[i].first, ranges[i - 1].second);  // no gap, no overlap
        }
        if (!keys.empty()) {
          ASSERT_LE(ranges.front().first, keys.lo);
          ASSERT_GE(ranges.back().second, keys.hi);
        }
      }
    }
  }
}

TEST(WorkList, covers_every_row_and_key_once) {
  std::mt19937 rng(7);
  const Mask masks[] = {Mask::none(), Mask::causal(), Mask::window(100, 0), Mask::chunked(64)};
  for (int i = 0; i < 12; ++i) {
    const Batch batch(random_lengths(rng, 1 + i % 5), 1 + static_cast<int32_t>(rng() % 9), 2,
                      masks[i % 4]);
    for (const int32_t workers : {1, 2, 16}) {
      for (const bool is_batch_invariant : {false, true}) {
        expect_complete(batch, {.max_rows = 256,
                                .tile_keys = 256,
                                .rows_per_key_load = 32,
                                .workers = workers,
                                .is_batch_invariant = is_batch_invariant});
      }
    }
  }
}

TEST(WorkList, large_groups_are_cut_by_heads) {
  expect_complete(Batch({{3, 700}}, 300, 1, Mask::none()), {.max_rows = 256,
                                                            .tile_keys = 256,
                                                            .rows_per_key_load = 32,
                                                            .workers = 4,
                                                            .is_batch_invariant = false});
}

TEST(WorkList, one_long_decode_occupies_every_worker) {
  const Batch batch({{1, 65536}}, 4, 1, Mask::none());
  const WorkList list = make_work_list(batch.problem, {.max_rows = 256,
                                                       .tile_keys = 256,
                                                       .rows_per_key_load = 32,
                                                       .workers = 16,
                                                       .is_batch_invariant = false});
  EXPECT_GE(list.items.size(), 16U);
  EXPECT_EQ(list.num_split_rows, 4);
}

TEST(WorkList, splits_follow_the_visible_keys_not_the_length) {
  const Batch batch({{1, 100000}}, 4, 1, Mask::window(511, 0));
  const WorkList list = make_work_list(batch.problem, {.max_rows = 256,
                                                       .tile_keys = 256,
                                                       .rows_per_key_load = 32,
                                                       .workers = 16,
                                                       .is_batch_invariant = false});
  ASSERT_EQ(list.items.size(), 1U);
  EXPECT_EQ(list.items[0].key_end - list.items[0].key_begin, 512);
}

TEST(WorkList, the_longest_piece_comes_first) {
  const Batch batch({{1, 10}, {400, 8000}, {1, 3000}}, 1, 1, Mask::none());
  const WorkList list = make_work_list(batch.problem, {.max_rows = 256,
                                                       .tile_keys = 256,
                                                       .rows_per_key_load = 32,
                                                       .workers = 1,
                                                       .is_batch_invariant = false});
  EXPECT_EQ(list.items.front().sequence, 1);
  EXPECT_EQ(list.items.back().sequence, 0);
}

TEST(WorkList, a_sequence_is_cut_the_same_in_any_batch_when_invariant) {
  const auto cuts = [](const Batch& batch, int32_t sequence, int32_t workers) {
    const WorkList list = make_work_list(batch.problem, {.max_rows = 256,
                                                         .tile_keys = 256,
                                                         .rows_per_key_load = 32,
                                                         .workers = workers,
                                                         .is_batch_invariant = true});
    std::vector<std::tuple<int32_t, int32_t, int32_t, int32_t>> result;
    for (const WorkItem& item : list.items) {
      if (item.sequence == sequence) {
        result.emplace_back(item.token_begin, item.token_count, item.key_begin, item.key_end);
      }
    }
    std::sort(result.begin(), result.end());
    return result;
  };
  const Batch alone({{300, 20000}}, 2, 1, Mask::causal());
  const Batch among({{1, 5}, {300, 20000}, {700, 900}}, 2, 1, Mask::causal());
  EXPECT_EQ(cuts(alone, 0, 1), cuts(among, 1, 16));
  EXPECT_GT(cuts(alone, 0, 1).size(), 2U);
}

}  // namespace
}  // namespace pagoda::schedule
