// ExpressionMask on the emulator against the row masks of the host: every key, bias, walk and tile
// status, for masks like those of the conformance table and for random expressions. The arrays are
// buffers of the emulator: a read beside them is reported.
#include "mask/expression_mask.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <gtest/gtest.h>
#include <string>
#include <utility>
#include <vector>

#include "mask/make_expression_mask.hpp"
#include "mask/row_mask.hpp"
#include "testing/material/expression_mask_material.hpp"

namespace pagoda::mask {
namespace {

// What the host makes of scores in natural units of one row: of keys [0, keys), -infinity = hidden.
std::vector<float> apply_on_host(const Mask& mask, int32_t sequence, int32_t row, int32_t head,
                                 std::vector<float> scores) {
  std::vector<int32_t> lengths;
  for (const Sequence& s : kSequences) lengths.push_back(s.keys);
  core::Problem problem;
  problem.batch = kBatch;
  problem.seqlens_kv = lengths;
  problem.mask = mask.nodes();
  const RowPosition position{sequence, row, head, kSequences[sequence].position + row};
  apply(problem, position, 0, static_cast<int32_t>(scores.size()), scores.data());
  return scores;
}

// The keys of one row and head, from any column on, and the scores of those kept.
void expect_row(const ExpressionRow& view, const std::vector<float>& scores,
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
      const float score = is_kept ? view.rewrite(k, scores[i] * kLog2e) : -kInfinity;
      if (std::isinf(expected[i])) {
        ASSERT_EQ(score, -kInfinity) << "key " << k << " from column " << column;
      } else {
        ASSERT_NEAR(score, expected[i] * kLog2e, 1e-4) << "key " << k << " from column " << column;
      }
      // One bias after the other gives the same.
      float by_bias = scores[i] * kLog2e;
      for (int32_t b = 0; is_kept && b < view.mask->num_biases; ++b) {
        by_bias = view.bias(b).rewrite(k, by_bias);
      }
      if (is_kept) {
        ASSERT_EQ(by_bias, score);
      }
    }
  }
}

// Walk and statuses against what one row keeps: every key visited, none hidden in unmasked tiles.
void expect_tiles(const ExpressionMask& mask, const RowTile& tile, const ExpressionRow& view,
                  const std::vector<float>& expected) {
  const auto is_kept = [&](int32_t k) { return (view.keep32(k) & 1U) != 0; };
  const TileWalk walk = mask.walk(tile, tile_shape(32, 16));
  for (int32_t k = 0; k < tile.seqlen_kv; ++k) {
    if (std::isinf(expected[static_cast<size_t>(k)])) continue;
    const int32_t t = (k - walk.start_column) / 32;
    ASSERT_TRUE(k >= walk.start_column && t < walk.num_tiles && k < walk.end_column) << "key " << k;
    ASSERT_NE(mask.status(tile, k - k % 32, 32), TileStatus::kSkip) << "key " << k;
  }
  for (int32_t t = 0; t < walk.num_tiles; ++t) {
    ASSERT_EQ(walk.status(t), mask.status(tile, walk.column(t), 32)) << "tile " << t;
    for (int32_t n = 0; walk.status(t) == TileStatus::kUnmasked && n < 32; ++n) {
      ASSERT_TRUE(is_kept(walk.column(t) + n)) << "tile " << t << " key " << n;
    }
  }
}

void expect_like_host(const Mask& mask, Material& material) {
  ASSERT_EQ(unsupported_mask_reason(mask.nodes()), "");
  const ExpressionMask device = make_expression_mask(mask.nodes());
  const auto body = [&] {
    for (int32_t b = 0; b < kBatch; ++b) {
      const Sequence& s = kSequences[b];
      const int32_t first = material.below(s.rows);
      const RowTile tile{.sequence = b,
                         .seqlen_kv = s.keys,
                         .q_position = s.position,
                         .first_row = first,
                         .num_rows = std::min(1 + material.below(12), s.rows - first)};
      for (int32_t row = first; row < first + tile.num_rows; ++row) {
        const int32_t head = material.below(kHeads);
        std::vector<float> scores(static_cast<size_t>(s.keys));
        for (float& score : scores) score = static_cast<float>(material.below(64)) / 8.0F;
        const std::vector<float> expected = apply_on_host(mask, b, row, head, scores);
        const ExpressionRow view = device.row(tile, row, head);
        SCOPED_TRACE("sequence " + std::to_string(b) + " row " + std::to_string(row));
        expect_row(view, scores, expected);
        expect_tiles(device, tile, view, expected);
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  };
  const emulator::Result result = emulator::run_on_machine(material.buffers, body);
  ASSERT_TRUE(result.is_clean()) << result.reports.front().message;
}

using M = Material;
struct NamedMask {
  const char* name;
  Mask (*make)(M&);
};
constexpr NamedMask kMasks[] = {
    {"full", [](M&) { return Mask::none(); }},
    {"causal", [](M&) { return Mask::causal(); }},
    {"window8", [](M&) { return Mask::window(7, 0); }},
    {"windowleft", [](M&) { return Mask::window(20, -1); }},
    {"windowright", [](M&) { return Mask::window(-1, 6); }},
    {"windowboth", [](M&) { return Mask::window(11, 5); }},
    {"chunked16", [](M&) { return Mask::chunked(16); }},
    {"chunked5_causal", [](M&) { return Mask::chunked(5) & Mask::causal(); }},
    {"two_chunks", [](M&) { return Mask::chunked(40) & Mask::chunked(64); }},
    {"padding", [](M& m) { return m.padding(); }},
    {"padding_causal", [](M& m) { return m.padding() & Mask::causal(); }},
    {"two_paddings", [](M& m) { return m.padding() & m.padding() & Mask::causal(); }},
    {"additive3", [](M& m) { return m.additive(3, false, true); }},
    {"additive3_shared", [](M& m) { return m.additive(3, true, true); }},
    {"additive4", [](M& m) { return m.additive(4, false, false); }},
    {"additive4_onehead", [](M& m) { return m.additive(4, false, true); }},
    {"additive4_causal", [](M& m) { return m.additive(4, true, false) & Mask::causal(); }},
    {"relative4", [](M& m) { return m.relative_bias(4); }},
    {"relative0", [](M& m) { return m.relative_bias(0); }},
    {"relative300_causal", [](M& m) { return Mask::causal() & m.relative_bias(300); }},
    {"additive_relative",
     [](M& m) { return m.additive(4, true, true) & m.relative_bias(9) & Mask::window(30, 2); }},
    {"bits", [](M& m) { return m.bits(0, 40); }},
    {"bits_window", [](M& m) { return m.bits(0, 40) & Mask::window(45, 3); }},
    {"bits_sparse_causal", [](M& m) { return m.bits(0, 3) & Mask::causal(); }},
    {"window_or_prefix",
     [](M& m) { return Mask::causal() & (Mask::window(6, 0) | m.bits(10, 0)); }},
    {"chunk_or_window", [](M&) { return Mask::chunked(12) | Mask::window(3, 1); }},
    {"padding_or_window", [](M& m) { return m.padding() | Mask::window(2, 2); }},
    {"or_of_distant", [](M& m) { return Mask::window(4, 0) | (m.bits(3, 0) & Mask::causal()); }},
    {"nested",
     [](M& m) {
       return (Mask::causal() & (Mask::chunked(32) | m.bits(4, 10))) |
              (Mask::window(2, 2) & (m.padding() | m.bits(0, 30)));
     }},
    {"nothing",
     [](M& m) { return Mask::causal() & Mask::window(-1, 0) & Mask::chunked(1) & m.bits(0, 0); }},
    {"bias_and_or", [](M& m) { return m.relative_bias(16) & (Mask::window(9, 0) | m.bits(5, 0)); }},
    {"eight_leaves",  // the stack at its deepest
     [](M& m) {
       return ((Mask::window(9, 0) | m.bits(5, 20)) & (Mask::chunked(24) | m.bits(0, 50))) |
              ((m.padding() | m.bits(0, 50)) & (Mask::window(3, 3) | m.bits(30, 0)));
     }},
    {"leaning_right",
     [](M& m) {
       return Mask::window(3, 0) |
              (m.bits(0, 60) &
               (Mask::chunked(8) |
                (m.padding() & (m.bits(4, 30) | (Mask::causal() & m.bits(0, 70))))));
     }},
};

TEST(ExpressionMask, says_what_the_host_says) {
  for (const NamedMask& mask : kMasks) {
    for (uint32_t seed = 0; seed < 20; ++seed) {
      SCOPED_TRACE(mask.name);
      Material material(seed);
      expect_like_host(mask.make(material), material);
      if (HasFailure()) return;
    }
  }
}

// Any tree of leaves that hide.
Mask random_tree(Material& m, int32_t leaves) {
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
    default: return m.bits(m.below(20), m.below(100));
  }
}

TEST(ExpressionMask, says_what_the_host_says_of_random_expressions) {
  for (uint32_t seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Material m(seed);
    Mask mask = random_tree(m, 1 + m.below(6));
    if (m.below(3) == 0) mask = mask & m.additive(3 + m.below(2), m.below(2) == 0, m.below(2) == 0);
    if (m.below(3) == 0) mask = m.relative_bias(m.below(40)) & mask;
    expect_like_host(mask, m);
    if (HasFailure()) return;
  }
}

TEST(ExpressionMask, reads_beside_the_arrays_are_reported) {
  Material material(1);
  const Mask mask = material.bits(0, 50) & material.padding();
  const ExpressionMask device = make_expression_mask(mask.nodes());
  const RowTile tile{
      .sequence = kBatch + 1, .seqlen_kv = 100, .q_position = 0, .first_row = 0, .num_rows = 1};
  const emulator::Result result = emulator::run_on_machine(material.buffers, [&] {
    static_cast<void>(device.walk(tile, {64, 1}));
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
  Material m(1);
  const RowTile tile{
      .sequence = 0, .seqlen_kv = 300, .q_position = 200, .first_row = 0, .num_rows = 50};
  const auto unmasked = [&](const Mask& mask) {
    TileWalk walk;
    emulator::run_on_machine(m.buffers, [&] {
      walk = make_expression_mask(mask.nodes()).walk(tile, tile_shape(64, 0));
    });
    return walk.unmasked_end - walk.unmasked_begin;
  };
  EXPECT_EQ(unmasked(Mask::causal()), 3);
  EXPECT_EQ(unmasked(Mask::causal() & m.relative_bias(3)), 3);
  EXPECT_EQ(unmasked(Mask::chunked(400) & Mask::chunked(401) & Mask::causal()), 3);
  EXPECT_EQ(unmasked(Mask::causal() & m.bits(0, 50)), 0);
  EXPECT_EQ(unmasked(Mask::causal() | Mask::window(9, 0)), 0);
}

}  // namespace
}  // namespace pagoda::mask
