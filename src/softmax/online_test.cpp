// Rows through random tiles against the softmax in double precision.
#include "softmax/online.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <gtest/gtest.h>
#include <limits>
#include <numbers>
#include <random>
#include <vector>

namespace pagoda::softmax {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr size_t kDim = 3;
static_assert(kLog2e == std::numbers::log2e_v<float> && kLn2 == std::numbers::ln2_v<float>);
using Vector = std::array<double, kDim>;

// The rule without lazy rescaling, as a reference.
struct RescaleAlways {
  static constexpr float kThreshold = 0;
  static constexpr float kBias = 0;
};

struct Row {
  std::vector<float> scores;  // natural; -infinity = masked
  std::vector<Vector> values;
};

struct Expected {
  Vector o{};
  double lse = -kInfinity;
  double max = -kInfinity;
};

Expected in_double(const Row& row, double sink) {
  Expected e;
  e.max = sink;
  for (const float s : row.scores) e.max = std::max(e.max, double{s});
  if (e.max == -kInfinity) return e;
  double sum = std::exp(sink - e.max);
  for (size_t k = 0; k < row.scores.size(); ++k) {
    const double p = std::exp(double{row.scores[k]} - e.max);
    sum += p;
    for (size_t d = 0; d < kDim; ++d) e.o[d] += p * row.values[k][d];
  }
  for (double& o : e.o) o /= sum;
  e.lse = e.max + std::log(sum);
  return e;
}

// Sums and O of keys [begin, end) in tiles; `votes` chooses tiles that rescale without need.
struct Part {
  Sums sums;
  float max = kMinusInfinity;
  float largest_p = 0;
  int rescales = 0;
  Vector o{};
};
template <typename Rule>
Part run_tiles(const Row& row, size_t begin, size_t end, size_t tile, std::mt19937* votes) {
  Part part;
  OnlineRow<Rule> online;
  for (size_t first = begin; first < end; first += tile) {
    const size_t last = std::min(end, first + tile);
    float tile_max = kMinusInfinity;
    for (size_t k = first; k < last; ++k) tile_max = std::max(tile_max, row.scores[k] * kLog2e);
    const bool vote = online.wants_rescale(tile_max) || (votes != nullptr && (*votes)() % 4 == 0);
    const float factor = online.begin_tile(tile_max, vote);
    part.rescales += factor != 1.0F ? 1 : 0;
    for (double& o : part.o) o *= double{factor};
    float sum = 0;
    for (size_t k = first; k < last; ++k) {
      const float p = std::exp2(row.scores[k] * kLog2e + online.offset());
      part.largest_p = std::max(part.largest_p, p);
      sum += p;
      for (size_t d = 0; d < kDim; ++d) part.o[d] += double{p} * row.values[k][d];
    }
    online.add(sum);
  }
  part.sums = online.sums();
  part.max = online.max();
  return part;
}

void expect_row(const Part& part, const Row& row, float sink) {
  const Expected e = in_double(row, double{sink});
  const RowResult end = finish(part.sums, sink, 1.0F);
  if (e.lse == -kInfinity) {
    ASSERT_EQ(end.lse(), kMinusInfinity);
    ASSERT_EQ(end.o_factor, 0.0F);
    ASSERT_EQ(finish_max(part.max, sink), kMinusInfinity);
    return;
  }
  // fp32 scores of magnitude 2^7 in log2 units have errors of 2^-17.
  ASSERT_NEAR(end.lse(), e.lse, 3e-5);
  ASSERT_NEAR(finish_max(part.max, sink), e.max, 2e-5);
  for (size_t d = 0; d < kDim; ++d) {
    ASSERT_NEAR(end.o_factor * part.o[d], e.o[d], 3e-5);
  }
}

Row random_row(std::mt19937& rng, size_t keys, int kind) {
  std::normal_distribution<float> normal(0, kind == 1 ? 20.0F : 2.0F);
  Row row;
  for (size_t k = 0; k < keys; ++k) {
    float s = normal(rng);
    if (kind == 2) s += static_cast<float>(k) * 0.3F;  // grows: rescales often
    const bool is_hidden = kind == 4 || (kind == 3 && (k < keys / 2 || rng() % 3 == 0));
    row.scores.push_back(is_hidden ? kMinusInfinity : s);
    Vector v{};
    for (double& x : v) x = static_cast<double>(normal(rng)) / (kind == 1 ? 20 : 2);
    row.values.push_back(v);
  }
  return row;
}

template <typename Rule>
void expect_exact() {
  std::mt19937 rng(17);
  for (int i = 0; i < 400; ++i) {
    const Row row = random_row(rng, 1 + rng() % 200, i % 5);
    const float sink = i % 3 == 0 ? kMinusInfinity : static_cast<float>(rng() % 400) / 10 - 20;
    for (const size_t tile : {1, 7, 32, 500}) {
      std::mt19937 votes(static_cast<uint32_t>(i));
      const Part part =
          run_tiles<Rule>(row, 0, row.scores.size(), tile, i % 2 == 0 ? &votes : nullptr);
      expect_row(part, row, sink);
      ASSERT_LE(part.largest_p, std::exp2(Rule::kBias - Rule::kThreshold) * 1.0001F);
      if (testing::Test::HasFatalFailure()) FAIL() << "case " << i << " tile " << tile;
    }
  }
}

TEST(OnlineRow, is_the_softmax_whether_or_not_it_rescales_lazily) {
  expect_exact<RescaleAlways>();
  expect_exact<RescaleLazily>();
  expect_exact<RescaleLazilyFp8>();
}

TEST(OnlineRow, lazy_rescale_rescales_less_and_never_lets_p_grow_past_its_bound) {
  std::mt19937 rng(2);
  const Row row = random_row(rng, 2000, 2);
  const Part always = run_tiles<RescaleAlways>(row, 0, 2000, 16, nullptr);
  const Part lazily = run_tiles<RescaleLazily>(row, 0, 2000, 16, nullptr);
  EXPECT_GT(always.rescales, 100);
  EXPECT_LT(lazily.rescales, always.rescales * 9 / 10);
  EXPECT_GT(lazily.largest_p, 8.0F);  // rescaling was delayed
  EXPECT_LE(lazily.largest_p, 256.0F);
  EXPECT_LE(run_tiles<RescaleLazilyFp8>(row, 0, 2000, 16, nullptr).largest_p, 256.0F);
  // A row that never needs to rescale sets its pivot once: at its first key, with factor 1.
  EXPECT_EQ(run_tiles<RescaleLazily>(random_row(rng, 2000, 0), 0, 2000, 2000, nullptr).rescales, 0);
}

// The same where only the first tile, and one whose P have overflowed, look for a maximum.
template <typename Rule>
Part run_tiles_at_pivots(const Row& row, size_t tile) {
  Part part;
  OnlineRow<Rule> online;
  const auto tile_of = [&](size_t first, const auto& on_key) {
    for (size_t k = first; k < std::min(row.scores.size(), first + tile); ++k) {
      on_key(k, row.scores[k] * kLog2e);
    }
  };
  for (size_t first = 0; first < row.scores.size(); first += tile) {
    float factor = 1;
    const auto find_maximum = [&] {
      float largest = kMinusInfinity;
      tile_of(first, [&](size_t, float score) { largest = std::max(largest, score); });
      factor *= online.begin_tile(largest, online.wants_rescale(largest));
    };
    if (first == 0) find_maximum();
    std::vector<float> p;
    float sum = 0, largest_group = 0;
    const auto exponentials = [&] {
      p.clear();
      sum = largest_group = 0;
      float group = 0;
      tile_of(first, [&](size_t, float score) {
        p.push_back(std::exp2(score + online.offset()));
        sum += p.back();
        group += p.back();
        if (Rule::kGroup == 0 || p.size() % Rule::kGroup == 0) {
          largest_group = std::max(largest_group, group);
          if (Rule::kGroup != 0) group = 0;
        }
      });
      largest_group = std::max(largest_group, group);
    };
    exponentials();
    if (sum >= kSumOverflow) {
      find_maximum();
      exponentials();
    } else if (largest_group > Rule::kLargestSum) {
      const float of_p = online.move_pivot(*std::max_element(p.begin(), p.end()));
      for (float& value : p) value *= of_p;
      sum *= of_p;
      factor *= of_p;
      EXPECT_LE(*std::max_element(p.begin(), p.end()), std::exp2(Rule::kBias));
      EXPECT_GE(*std::max_element(p.begin(), p.end()), std::exp2(Rule::kBias - 1));
    }
    part.rescales += factor != 1.0F ? 1 : 0;
    for (double& o : part.o) o *= double{factor};
    tile_of(first, [&](size_t k, float) {
      part.largest_p = std::max(part.largest_p, p[k - first]);
      for (size_t d = 0; d < kDim; ++d) part.o[d] += double{p[k - first]} * row.values[k][d];
    });
    online.add(sum);
  }
  part.sums = online.sums();
  for (const float score : row.scores) part.max = std::max(part.max, score * kLog2e);
  return part;
}

template <typename Rule>
void expect_exact_at_pivots() {
  std::mt19937 rng(29);
  int rescales = 0;
  for (int i = 0; i < 400; ++i) {
    Row row = random_row(rng, 1 + rng() % 200, i % 3);
    if (i % 4 == 0) {  // by more than fp32 holds
      for (size_t k = row.scores.size() / 2; k < row.scores.size(); ++k) row.scores[k] += 95;
    }
    for (const size_t tile : {4, 7, 32}) {
      const Part part = run_tiles_at_pivots<Rule>(row, tile);
      rescales += part.rescales;
      expect_row(part, row, kMinusInfinity);
      ASSERT_LE(part.largest_p, Rule::kLargestSum);
      if (testing::Test::HasFatalFailure()) FAIL() << "case " << i << " tile " << tile;
    }
  }
  EXPECT_GT(rescales, 300);
}

TEST(OnlineRow, is_the_softmax_where_p_moves_the_pivot) {
  expect_exact_at_pivots<RescaleLazily>();
  expect_exact_at_pivots<RescaleLazilyFp8>();
}

TEST(OnlineRow, moves_no_pivot_for_a_p_that_is_small_or_has_overflowed) {
  OnlineRow<RescaleLazily> row;
  EXPECT_EQ(row.begin_tile(3, true), 1.0F);
  EXPECT_EQ(row.move_pivot(0), 1.0F);
  EXPECT_EQ(row.move_pivot(0.75F), 1.0F);
  EXPECT_EQ(row.move_pivot(std::numeric_limits<float>::infinity()), 1.0F);
  EXPECT_EQ(row.sums().pivot, 3.0F);
  EXPECT_EQ(row.move_pivot(1024), 0x1p-11F);
  EXPECT_EQ(row.sums().pivot, 14.0F);
  // A later maximum below the pivot does not move it back.
  EXPECT_EQ(row.begin_tile(5, true), 1.0F);
}

template <typename Rule>
void expect_merge() {
  std::mt19937 rng(23);
  for (int i = 0; i < 300; ++i) {
    const size_t keys = 1 + rng() % 150;
    const Row row = random_row(rng, keys, i % 5);
    const float sink = i % 2 == 0 ? kMinusInfinity : 1.5F;
    Part all;
    const size_t size = 1 + rng() % 60;
    for (size_t begin = 0; begin < keys + 2 * size; begin += size) {  // the last ones are empty
      const size_t first = std::min(begin, keys);
      const Part part = run_tiles<Rule>(row, first, std::min(keys, first + size), 8, nullptr);
      const Merged merged = merge(all.sums, part.sums);
      for (size_t d = 0; d < kDim; ++d) {
        const double a = merged.a == 0.0F ? 0.0 : double{merged.a} * all.o[d];
        const double b = merged.b == 0.0F ? 0.0 : double{merged.b} * part.o[d];
        all.o[d] = a + b;
      }
      all.sums = merged.sums;
      all.max = std::max(all.max, part.max);
    }
    expect_row(all, row, sink);
    if (testing::Test::HasFatalFailure()) FAIL() << "case " << i;
  }
}

TEST(Merge, parts_of_the_keys_give_the_whole_and_the_sink_enters_once) {
  expect_merge<RescaleAlways>();
  expect_merge<RescaleLazily>();
  expect_merge<RescaleLazilyFp8>();
}

TEST(Merge, an_empty_part_has_no_weight_on_either_side) {
  const Sums some{3, 2};
  const Merged left = merge(Sums{}, some);
  EXPECT_EQ(left.a, 0.0F);
  EXPECT_EQ(left.b, 1.0F);
  EXPECT_EQ(left.sums.pivot, 3.0F);
  const Merged right = merge(some, Sums{});
  EXPECT_EQ(right.a, 1.0F);
  EXPECT_EQ(right.b, 0.0F);
  EXPECT_EQ(right.sums.sum, 2.0F);
  EXPECT_FALSE(merge(Sums{}, Sums{}).sums.has_keys());
}

TEST(Merge, normalised_parts_merge_by_their_lse) {
  const float lse_a = 1.25F, lse_b = -0.5F;
  const Merged merged = merge({lse_a * kLog2e, 1}, {lse_b * kLog2e, 1});
  const RowResult end = finish(merged.sums, kMinusInfinity, 1);
  const double denominator = std::exp(double{lse_a}) + std::exp(double{lse_b});
  EXPECT_NEAR(end.lse(), std::log(denominator), 1e-6);
  EXPECT_NEAR(merged.a * end.o_factor, std::exp(double{lse_a}) / denominator, 1e-6);
  EXPECT_NEAR(merged.b * end.o_factor, std::exp(double{lse_b}) / denominator, 1e-6);
}

TEST(Finish, fully_masked_row_gives_zero_or_the_sink) {
  const RowResult none = finish(Sums{}, kMinusInfinity, 1);
  EXPECT_EQ(none.o_factor, 0.0F);
  EXPECT_EQ(none.lse(), kMinusInfinity);
  for (const float sink : {-30.0F, 0.0F, 12.5F}) {
    const RowResult end = finish(Sums{}, sink, 1);
    EXPECT_EQ(end.o_factor, 0.0F);
    EXPECT_NEAR(end.lse(), sink, 1e-6 * std::abs(sink));
    EXPECT_NEAR(finish_max(kMinusInfinity, sink), sink, 1e-6 * std::abs(sink));
  }
}

TEST(Finish, a_sink_far_from_the_scores_on_either_side_is_exact) {
  for (const float sink : {-5000.0F, 5000.0F}) {  // 2^7213 fits no float
    const RowResult end = finish({2, 4}, sink, 1);
    EXPECT_EQ(end.o_factor, sink < 0 ? 0.25F : 0.0F);
    EXPECT_NEAR(end.lse(), sink < 0 ? 4 * std::log(2.0) : 5000.0, 1e-3);
  }
}

TEST(Finish, value_scale_multiplies_the_output_only) {
  const RowResult one = finish({2, 4}, kMinusInfinity, 1);
  const RowResult half = finish({2, 4}, kMinusInfinity, 0.5F);
  EXPECT_EQ(half.o_factor, one.o_factor / 2);
  EXPECT_EQ(half.lse(), one.lse());
}

TEST(OnlineRow, bad_scores_show) {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    for (const size_t at : {size_t{0}, size_t{5}}) {
      Row row;
      row.scores.assign(8, 1.0F);
      row.values.assign(8, Vector{1, 1, 1});
      row.scores[at] = bad;
      const Part part = run_tiles<RescaleLazily>(row, 0, 8, 2, nullptr);
      EXPECT_TRUE(std::isnan(part.sums.sum));
      EXPECT_TRUE(std::isnan(finish(part.sums, kMinusInfinity, 1).o_factor));
      const Merged merged = merge({1, 1}, part.sums);
      EXPECT_TRUE(std::isnan(merged.sums.sum));
    }
  }
  // A row of NaN only has no maximum.
  const Sums all_nan{kMinusInfinity, std::numeric_limits<float>::quiet_NaN()};
  EXPECT_TRUE(std::isnan(merge(all_nan, {1, 1}).sums.sum));
  EXPECT_TRUE(std::isnan(merge({1, 1}, all_nan).sums.sum));
  EXPECT_TRUE(std::isnan(finish(all_nan, 0.0F, 1).o_factor));
  EXPECT_TRUE(std::isnan(finish(all_nan, kMinusInfinity, 1).lse()));
}

}  // namespace
}  // namespace pagoda::softmax
