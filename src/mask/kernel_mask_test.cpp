// The classes that are more than an interval: keep words, walks and rewritten scores against the
// element test.
#include "mask/kernel_mask.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <vector>

#include "mask/additive_mask.hpp"
#include "mask/bits_mask.hpp"
#include "mask/functor_mask.hpp"

namespace pagoda::mask {
namespace {

constexpr IntervalRule kRules[] = {{}, {.right = 0}, {.left = 30, .right = 0}, {.chunk = 40}};

bool bit(uint32_t word, int32_t i) { return (word >> static_cast<uint32_t>(i) & 1U) != 0; }

// keep(row, key) of rows [0, rows) is what the mask says, tile by tile and word by word.
template <KernelMask M, typename Keep>
void expect_elements(const M& mask, const RowTile& tile, int32_t q_head, Keep keep) {
  const TileWalk walk = mask.walk(tile, tile_shape(64, 16));
  std::vector<bool> visited(static_cast<size_t>(tile.seqlen_kv));
  for (int32_t t = 0; t < walk.num_tiles; ++t) {
    for (int32_t k = walk.column(t); k < walk.column(t) + walk.valid_keys(t); ++k) {
      visited[static_cast<size_t>(k)] = true;
    }
  }
  for (int32_t i = 0; i < tile.num_rows; ++i) {
    const int32_t row = tile.first_row + i;
    const auto view = mask.row(tile, row, q_head);
    for (int32_t column = 0; column < tile.seqlen_kv + 70; column += 13) {
      const uint32_t word = view.keep32(column);
      for (int32_t n = 0; n < 32; ++n) {
        const int32_t k = column + n;
        const bool expected = k < tile.seqlen_kv && keep(row, k);
        ASSERT_EQ(bit(word, n), expected) << "row " << row << " key " << k;
        if (expected) {
          ASSERT_TRUE(visited[static_cast<size_t>(k)]) << "row " << row << " key " << k;
        }
      }
    }
    for (int32_t t = 0; t < walk.num_tiles; ++t) {
      if (walk.status(t) != TileStatus::kUnmasked) continue;
      for (int32_t n = 0; n < 64; ++n) ASSERT_TRUE(keep(row, walk.column(t) + n));
    }
    for (int32_t column = 0; column < tile.seqlen_kv; column += 64) {
      const TileStatus status = mask.status(tile, column, 64);
      for (int32_t k = column; k < std::min(column + 64, tile.seqlen_kv); ++k) {
        if (status == TileStatus::kSkip) {
          ASSERT_FALSE(keep(row, k));
        }
        if (status == TileStatus::kUnmasked) {
          ASSERT_TRUE(keep(row, k));
        }
      }
    }
  }
}

TEST(BitsMask, keeps_the_set_bits_of_the_interval) {
  std::mt19937 rng(3);
  for (const int32_t seqlen_kv : {1, 31, 32, 33, 100, 257}) {
    const int32_t rows = 20;
    const int32_t words_per_row = (seqlen_kv + 31) / 32;
    std::vector<uint32_t> words(static_cast<size_t>(5 + rows * words_per_row));
    for (uint32_t& word : words) word = static_cast<uint32_t>(rng());
    const std::vector<int64_t> offsets = {0, 5};  // sequence 1 starts at word 5
    for (const IntervalRule& rule : kRules) {
      const BitsMask mask{
          .interval = {.rule = rule}, .words = words.data(), .row_offsets = offsets.data()};
      const RowTile tile{.sequence = 1,
                         .seqlen_kv = seqlen_kv,
                         .q_position = seqlen_kv - rows,
                         .first_row = 4,
                         .num_rows = 16};
      expect_elements(mask, tile, 0, [&](int32_t row, int32_t k) {
        const int32_t index = 5 + row * words_per_row + k / 32;
        const uint32_t word = words[static_cast<size_t>(index)];
        return bit(word, k % 32) && rule.visible(tile.position(row), seqlen_kv).contains(k);
      });
      if (HasFatalFailure()) return;
    }
  }
}

struct OddDistance {
  int32_t head = 0;

  [[nodiscard]] bool keep(const Pair& p) const {
    return p.sequence == 2 && p.q_head == head && (p.q_position - p.key) % 2 != 0;
  }
};

struct OddDistanceDoubled : OddDistance {
  [[nodiscard]] float rewrite(const Pair& p, float score) const {
    return 2 * score + static_cast<float>(p.key);
  }
};

TEST(FunctorMask, asks_about_the_right_pair) {
  for (const IntervalRule& rule : kRules) {
    const RowTile tile{
        .sequence = 2, .seqlen_kv = 150, .q_position = 120, .first_row = 7, .num_rows = 9};
    const FunctorMask<OddDistance> mask{.interval = {.rule = rule}, .functor = {.head = 3}};
    static_assert(KernelMask<FunctorMask<OddDistance>>);
    static_assert(!FunctorMask<OddDistance>::kRewritesScores);
    expect_elements(mask, tile, 3, [&](int32_t row, int32_t k) {
      const int32_t q = 120 + row;
      return (q - k) % 2 != 0 && rule.visible(q, 150).contains(k);
    });
  }
  static_assert(FunctorMask<OddDistanceDoubled>::kRewritesScores);
  const FunctorMask<OddDistanceDoubled> mask{};
  const RowTile tile{
      .sequence = 2, .seqlen_kv = 150, .q_position = 120, .first_row = 0, .num_rows = 1};
  EXPECT_EQ(mask.row(tile, 0, 0).rewrite(11, 1.5F), 14.0F);
}

TEST(AdditiveMask, adds_the_materialised_bias_in_log2_units) {
  constexpr int32_t kKeys = 90, kRows = 12, kHeads = 2;
  std::mt19937 rng(9);
  std::vector<float> bias(static_cast<size_t>(2 * kHeads * kRows * kKeys));
  for (float& b : bias) b = static_cast<float>(rng() % 1000) / 100.0F - 5.0F;
  bias[7] = -std::numeric_limits<float>::infinity();
  const AdditiveMask mask{.interval = {.rule = {.right = 0}},
                          .data = bias.data(),
                          .sequence_stride = int64_t{kHeads} * kRows * kKeys,
                          .head_stride = int64_t{kRows} * kKeys,
                          .row_stride = kKeys};
  static_assert(AdditiveMask::kRewritesScores);
  for (const int32_t sequence : {0, 1}) {
    const RowTile tile{.sequence = sequence,
                       .seqlen_kv = kKeys,
                       .q_position = kKeys - kRows,
                       .first_row = 0,
                       .num_rows = kRows};
    expect_elements(mask, tile, 1, [](int32_t row, int32_t k) { return k <= kKeys - kRows + row; });
    for (int32_t head = 0; head < kHeads; ++head) {
      for (int32_t row = 0; row < kRows; ++row) {
        const AdditiveRow view = mask.row(tile, row, head);
        for (int32_t k = 0; k < kKeys; ++k) {
          const int32_t index = ((sequence * kHeads + head) * kRows + row) * kKeys + k;
          const double expected = 0.75 + double{bias[static_cast<size_t>(index)]} / std::log(2.0);
          if (std::isinf(expected)) {
            ASSERT_EQ(view.rewrite(k, 0.75F), -std::numeric_limits<float>::infinity());
          } else {
            ASSERT_NEAR(view.rewrite(k, 0.75F), expected, 2e-6);
          }
        }
        // Columns of the last tile past the keys have no bias to read.
        ASSERT_EQ(view.rewrite(kKeys, 0.75F), 0.75F);
      }
    }
  }
}

TEST(AdditiveMask, adds_the_relative_bias_within_its_extent) {
  constexpr int32_t kExtent = 6, kEntries = 2 * kExtent + 1;
  std::vector<float> table(static_cast<size_t>(3 * kEntries));
  for (size_t i = 0; i < table.size(); ++i) table[i] = static_cast<float>(i) + 1.0F;
  const AdditiveMask mask{
      .interval = {}, .data = table.data(), .head_stride = kEntries, .extent = kExtent};
  const RowTile tile{
      .sequence = 0, .seqlen_kv = 40, .q_position = -4, .first_row = 0, .num_rows = 50};
  for (int32_t head = 0; head < 3; ++head) {
    for (int32_t row = 0; row < 50; ++row) {
      const int32_t q = row - 4;
      const AdditiveRow view = mask.row(tile, row, head);
      for (int32_t k = 0; k < 40; ++k) {
        const int32_t distance = k - q;
        double expected = 0.5;
        if (distance >= -kExtent && distance <= kExtent) {
          const int32_t index = head * kEntries + distance + kExtent;
          expected += double{table[static_cast<size_t>(index)]} / std::log(2.0);
        }
        ASSERT_NEAR(view.rewrite(k, 0.5F), expected, 1e-5) << "q " << q << " k " << k;
      }
    }
  }
}

}  // namespace
}  // namespace pagoda::mask
