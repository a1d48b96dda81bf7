// ExpressionMask on the emulator against the row masks of the host: every key, bias and KV tile
// range, for masks like those of the conformance table and for random expressions. The
// arrays are buffers of the emulator: an out-of-bounds read is reported.
#include "mask/expression_mask.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <gtest/gtest.h>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "mask/make_expression_mask.hpp"
#include "mask/row_mask.hpp"
#include "testing/material/mask_arrays.hpp"
#include "testing/material/mask_table.hpp"

namespace pagoda::mask {
namespace {

using material::MaskArrays;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr int32_t kBatch = MaskArrays::kBatch;

// The host's result for one row of scores in natural units, keys [0, keys); -infinity = masked.
std::vector<float> apply_on_host(const Mask& mask, int32_t sequence, int32_t row, int32_t head,
                                 std::vector<float> scores) {
  std::vector<int32_t> lengths;
  for (const MaskArrays::Sequence& s : MaskArrays::kSequences) lengths.push_back(s.keys);
  core::Problem problem;
  problem.batch = kBatch;
  problem.seqlens_kv = lengths;
  problem.mask = mask.nodes();
  const int32_t first = MaskArrays::kSequences[sequence].position;
  const RowPosition position{sequence, row, head, first + row};
  apply(problem, position, 0, static_cast<int32_t>(scores.size()), scores.data());
  return scores;
}

// Checks the kept keys of one row and head, from any column on, and their scores.
void expect_row(const ExpressionRow& view, int32_t head, const std::vector<float>& scores,
                const std::vector<float>& expected) {
  constexpr float kLog2e = 1.44269504F;
  const auto keys = static_cast<int32_t>(scores.size());
  std::vector<float> got(scores.size());
  for (int32_t column = 0; column < keys + 70; column += 13) {
    const uint32_t word = view.keep32(column);
    for (int32_t n = 0; n < 32; ++n) {
      const bool is_kept = (word >> static_cast<uint32_t>(n) & 1U) != 0;
      const int32_t k = column + n;
      if (k >= keys) {
        ASSERT_FALSE(is_kept) << "key " << k << " of " << keys;
        continue;
      }
      const auto i = static_cast<size_t>(k);
      float score = is_kept ? scores[i] * kLog2e : -kInfinity;
      for (int32_t b = 0; is_kept && b < view.mask->num_biases; ++b) {
        score = view.mask->biases[b].row(view.tile, view.row, head).rewrite(k, score);
      }
      if (std::isinf(expected[i])) {
        ASSERT_EQ(score, -kInfinity) << "key " << k << " from column " << column;
      } else {
        ASSERT_NEAR(score, expected[i] * kLog2e, 1e-4) << "key " << k << " from column " << column;
      }
    }
  }
}

// Checks the KV tile range against the kept keys of one row: every kept key lies in a tile, and
// unmasked tiles have no masked key.
void expect_tiles(const ExpressionMask& mask, const RowTile& tile, const ExpressionRow& view,
                  const std::vector<float>& expected) {
  const auto is_kept = [&](int32_t k) { return (view.keep32(k) & 1U) != 0; };
  const KVTileRange range = mask.kv_tiles(tile, tile_shape(32, 16));
  for (int32_t k = 0; k < tile.seqlen_kv; ++k) {
    if (std::isinf(expected[static_cast<size_t>(k)])) continue;
    const int32_t t = (k - range.start_column) / 32;
    ASSERT_TRUE(k >= range.start_column && t < range.num_tiles && k < range.end_column)
        << "key " << k;
  }
  for (int32_t t = 0; t < range.num_tiles; ++t) {
    const bool is_unmasked = range.unmasked_begin <= t && t < range.unmasked_end;
    for (int32_t n = 0; is_unmasked && n < 32; ++n) {
      ASSERT_TRUE(is_kept(range.column(t) + n)) << "tile " << t << " key " << n;
    }
  }
}

void expect_like_host(const Mask& mask, MaskArrays& arrays) {
  ASSERT_EQ(unsupported_mask_reason(mask.nodes()), "");
  const ExpressionMask device = make_expression_mask(mask.nodes());
  const auto body = [&] {
    for (int32_t b = 0; b < kBatch; ++b) {
      const MaskArrays::Sequence& s = MaskArrays::kSequences[b];
      const int32_t first = arrays.below(s.rows);
      const RowTile tile{.sequence = b,
                         .seqlen_kv = s.keys,
                         .q_position = s.position,
                         .first_row = first,
                         .num_rows = std::min(1 + arrays.below(12), s.rows - first)};
      for (int32_t row = first; row < first + tile.num_rows; ++row) {
        const int32_t head = arrays.below(MaskArrays::kHeads);
        std::vector<float> scores(static_cast<size_t>(s.keys));
        for (float& score : scores) score = static_cast<float>(arrays.below(64)) / 8.0F;
        const std::vector<float> expected = apply_on_host(mask, b, row, head, scores);
        const ExpressionRow view = device.row(tile, row);
        SCOPED_TRACE("sequence " + std::to_string(b) + " row " + std::to_string(row));
        expect_row(view, head, scores, expected);
        expect_tiles(device, tile, view, expected);
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  };
  const emulator::Result result = emulator::run_on_machine(arrays.buffers, body);
  ASSERT_TRUE(result.is_clean()) << result.reports.front().message;
}

// Deep trees, and intersections that are more than one interval rule.
template <class Add>
void for_each_special_mask(Add add) {
  using A = MaskArrays;
  add("full", [](A&) { return Mask::none(); });
  add("two_chunks", [](A&) { return Mask::chunked(40) & Mask::chunked(64); });
  add("two_paddings", [](A& a) { return a.padding() & a.padding() & Mask::causal(); });
  add("eight_leaves", [](A& a) {  // the deepest stack
    return ((Mask::window(9, 0) | a.bits(5, 0.2)) & (Mask::chunked(24) | a.bits(0, 0.5))) |
           ((a.padding() | a.bits(0, 0.5)) & (Mask::window(3, 3) | a.bits(30, 0)));
  });
  add("right_deep", [](A& a) {
    return Mask::window(3, 0) |
           (a.bits(0, 0.6) &
            (Mask::chunked(8) |
             (a.padding() & (a.bits(4, 0.3) | (Mask::causal() & a.bits(0, 0.7))))));
  });
}

TEST(ExpressionMask, keeps_and_biases_the_keys_that_the_host_does) {
  const auto check = [](const char* name, auto make) {
    for (uint32_t seed = 0; seed < 20 && !HasFailure(); ++seed) {
      SCOPED_TRACE(name);
      MaskArrays arrays(seed);
      expect_like_host(make(arrays), arrays);
    }
  };
  material::for_each_mask<MaskArrays>(check);
  for_each_special_mask(check);
}

// A random tree of leaves without biases.
Mask random_tree(MaskArrays& m, int32_t leaves) {
  if (leaves > 1) {
    const int32_t left = 1 + m.below(leaves - 1);
    const Mask a = random_tree(m, left), b = random_tree(m, leaves - left);
    return m.below(2) == 0 ? a & b : a | b;
  }
  switch (m.below(6)) {
    case 0: return Mask::none();
    case 1: return Mask::causal();
    case 2: return Mask::window(m.below(40) - 1, m.below(40) - 1);
    case 3: return Mask::chunked(1 + m.below(50));
    case 4: return m.padding();
    default: return m.bits(m.below(20), m.below(100) / 100.0);
  }
}

TEST(ExpressionMask, random_expressions_agree_with_the_host) {
  for (uint32_t seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    MaskArrays m(seed);
    Mask mask = random_tree(m, 1 + m.below(6));
    if (m.below(3) == 0) mask = mask & m.additive(3 + m.below(2), m.below(2) == 0, m.below(2) == 0);
    if (m.below(3) == 0) mask = m.relative_bias(m.below(40)) & mask;
    expect_like_host(mask, m);
    if (HasFailure()) return;
  }
}

TEST(ExpressionMask, out_of_bounds_reads_are_reported) {
  MaskArrays arrays(1);
  const Mask mask = arrays.bits(0, 0.5) & arrays.padding();
  const ExpressionMask device = make_expression_mask(mask.nodes());
  const RowTile tile{
      .sequence = kBatch + 1, .seqlen_kv = 100, .q_position = 0, .first_row = 0, .num_rows = 1};
  const emulator::Result result = emulator::run_on_machine(arrays.buffers, [&] {
    static_cast<void>(device.kv_tiles(tile, {64, 1}));
  });
  EXPECT_FALSE(result.is_clean());
}

TEST(ExpressionMask, distances_do_not_overflow) {
  const Bias bias{.extent = INT32_MAX - 1};
  const auto entries = [&](int32_t position) {
    const RowTile tile{.seqlen_kv = 100, .q_position = position};
    const BiasRow row = bias.row(tile, 0, 0);
    return std::pair{row.first, row.end};
  };
  EXPECT_EQ(entries(-2'000'000'000), std::pair(0, 147'483'647));
  EXPECT_EQ(entries(INT32_MAX - 10), std::pair(0, INT32_MAX));
  EXPECT_EQ(entries(INT32_MAX), std::pair(1, INT32_MAX));
}

TEST(ExpressionMask, one_interval_keeps_its_unmasked_tiles) {
  MaskArrays m(1);
  const RowTile tile{
      .sequence = 0, .seqlen_kv = 300, .q_position = 200, .first_row = 0, .num_rows = 50};
  const auto unmasked = [&](const Mask& mask) {
    KVTileRange range;
    emulator::run_on_machine(m.buffers, [&] {
      range = make_expression_mask(mask.nodes()).kv_tiles(tile, tile_shape(64, 0));
    });
    return range.unmasked_end - range.unmasked_begin;
  };
  EXPECT_EQ(unmasked(Mask::causal()), 3);
  EXPECT_EQ(unmasked(Mask::causal() & m.relative_bias(3)), 3);
  EXPECT_EQ(unmasked(Mask::chunked(400) & Mask::chunked(401) & Mask::causal()), 3);
  EXPECT_EQ(unmasked(Mask::causal() & m.bits(0, 0.5)), 0);
  EXPECT_EQ(unmasked(Mask::causal() | Mask::window(9, 0)), 0);
}

}  // namespace
}  // namespace pagoda::mask
