// merge_states() against a plain loop, and its rule for parts without visible keys.
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <numbers>
#include <random>
#include <vector>

#include "core/element.hpp"
#include "pagoda/pagoda.hpp"

namespace pagoda {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
const Options kOptions{.backend = "reference"};

struct States {
  States(int64_t parts_, int64_t rows_, int64_t heads_, int64_t dim_, uint32_t seed = 1)
      : parts(parts_), rows(rows_), heads(heads_), dim(dim_) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal(0, 3);
    partial_out.resize(static_cast<size_t>(parts * rows * heads * dim));
    partial_lse.resize(static_cast<size_t>(parts * rows * heads));
    for (float& x : partial_out) x = normal(random);
    for (float& x : partial_lse) x = normal(random);
    out.assign(static_cast<size_t>(rows * heads * dim), NAN);
    lse.assign(static_cast<size_t>(rows * heads), NAN);
  }
  [[nodiscard]] MergeStates call() {
    return {.partial_out =
                ConstTensor::contiguous(partial_out.data(), DType::kF32, {parts, rows, heads, dim}),
            .partial_lse =
                ConstTensor::contiguous(partial_lse.data(), DType::kF32, {parts, rows, heads}),
            .out = Tensor::contiguous(out.data(), DType::kF32, {rows, heads, dim}),
            .lse = Tensor::contiguous(lse.data(), DType::kF32, {rows, heads})};
  }
  // Part `part` has no visible key in any row: its O must not be read.
  void silence(int64_t part) {
    const int64_t lses = rows * heads;
    std::fill_n(partial_lse.begin() + part * lses, lses, -kInfinity);
    std::fill_n(partial_out.begin() + part * lses * dim, lses * dim, NAN);
  }
  void expect_plain_merge() const {
    for (int64_t row = 0; row < rows * heads; ++row) {
      long double sum = 0;
      for (int64_t p = 0; p < parts; ++p) sum += std::exp(static_cast<long double>(lse_at(p, row)));
      for (int64_t c = 0; c < dim; ++c) {
        long double expected = 0;
        for (int64_t p = 0; p < parts; ++p) {
          if (lse_at(p, row) == -kInfinity) continue;
          const auto i = static_cast<size_t>((p * rows * heads + row) * dim + c);
          expected += std::exp(static_cast<long double>(lse_at(p, row))) / sum * partial_out[i];
        }
        ASSERT_NEAR(out[static_cast<size_t>(row * dim + c)], static_cast<double>(expected), 2e-6);
      }
      ASSERT_NEAR(lse[static_cast<size_t>(row)], static_cast<double>(std::log(sum)), 1e-6);
    }
  }
  [[nodiscard]] float lse_at(int64_t part, int64_t row) const {
    return partial_lse[static_cast<size_t>(part * rows * heads + row)];
  }

  int64_t parts, rows, heads, dim;
  std::vector<float> partial_out, partial_lse, out, lse;
};

TEST(MergeStates, equals_a_plain_loop) {
  for (const int64_t parts : {1, 2, 3, 17}) {
    for (const int64_t dim : {1, 8, 64, 72, 200}) {
      States states(parts, 5, 3, dim, static_cast<uint32_t>(parts * 1000 + dim));
      ASSERT_TRUE(merge_states(states.call(), kOptions));
      states.expect_plain_merge();
    }
  }
}

TEST(MergeStates, a_part_without_keys_never_reaches_the_output) {
  for (int64_t silent = 0; silent < 3; ++silent) {
    States states(3, 4, 2, 24);
    states.silence(silent);
    ASSERT_TRUE(merge_states(states.call(), kOptions));
    states.expect_plain_merge();
  }
}

TEST(MergeStates, no_part_with_keys_gives_zero_and_minus_infinity) {
  States states(3, 4, 2, 24);
  for (int64_t part = 0; part < 3; ++part) states.silence(part);
  ASSERT_TRUE(merge_states(states.call(), kOptions));
  for (const float x : states.out) ASSERT_EQ(x, 0.0F);
  for (const float x : states.lse) ASSERT_EQ(x, -kInfinity);
}

TEST(MergeStates, one_part_with_keys_is_copied_bit_for_bit) {
  States states(3, 4, 2, 24);
  states.silence(0);
  states.silence(2);
  ASSERT_TRUE(merge_states(states.call(), kOptions));
  const size_t n = states.out.size(), m = states.lse.size();
  for (size_t i = 0; i < n; ++i) ASSERT_EQ(states.out[i], states.partial_out[n + i]);
  for (size_t i = 0; i < m; ++i) ASSERT_EQ(states.lse[i], states.partial_lse[m + i]);
}

TEST(MergeStates, huge_lses_do_not_overflow) {
  States states(2, 1, 1, 8);
  states.partial_lse = {30000.0F, 30001.0F};
  ASSERT_TRUE(merge_states(states.call(), kOptions));
  const double e = std::exp(1.0);
  EXPECT_NEAR(states.lse[0], 30001.0 + std::log1p(1 / e), 2e-3);
  for (size_t c = 0; c < 8; ++c) {
    const double a = states.partial_out[c], b = states.partial_out[8 + c];
    EXPECT_NEAR(states.out[c], (a + e * b) / (1 + e), 2e-6);
  }
}

TEST(MergeStates, a_nan_lse_reaches_the_output) {
  States states(2, 1, 1, 8);
  states.partial_lse = {1.0F, NAN};
  ASSERT_TRUE(merge_states(states.call(), kOptions));
  EXPECT_TRUE(std::isnan(states.out[0]));
  EXPECT_TRUE(std::isnan(states.lse[0]));
}

TEST(MergeStates, repeats_bit_for_bit_on_any_executor) {
  States states(7, 301, 5, 40);
  ASSERT_TRUE(merge_states(states.call(), kOptions));
  const std::vector<float> out = states.out, lse = states.lse;
  ASSERT_TRUE(
      merge_states(states.call(), {.backend = "reference", .executor = &serial_executor()}));
  EXPECT_EQ(states.out, out);
  EXPECT_EQ(states.lse, lse);
}

// O that is one of the parts.
TEST(MergeStates, in_place_gives_the_same_bits) {
  for (const int64_t target : {0, 1, 2}) {
    States states(3, 5, 2, 72), in_place(3, 5, 2, 72);
    ASSERT_TRUE(merge_states(states.call(), kOptions));
    MergeStates call = in_place.call();
    float* const out = in_place.partial_out.data() + target * 5 * 2 * 72;
    call.out.data = out;
    float* const lse = in_place.partial_lse.data() + (2 - target) * 5 * 2;
    call.lse.data = lse;
    const Status status = merge_states(call, kOptions);
    ASSERT_TRUE(status) << status.message();
    EXPECT_TRUE(std::equal(states.out.begin(), states.out.end(), out));
    EXPECT_TRUE(std::equal(states.lse.begin(), states.lse.end(), lse));
  }
}

TEST(MergeStates, lses_may_have_heads_before_rows_and_base_2) {
  States states(3, 5, 2, 8), other(3, 5, 2, 8);
  ASSERT_TRUE(merge_states(states.call(), kOptions));
  for (int64_t p = 0; p < 3; ++p) {
    for (int64_t row = 0; row < 5; ++row) {
      for (int64_t h = 0; h < 2; ++h) {
        other.partial_lse[static_cast<size_t>((p * 2 + h) * 5 + row)] =
            states.lse_at(p, row * 2 + h) * std::numbers::log2e_v<float>;
      }
    }
  }
  MergeStates call = other.call();
  call.partial_lse = ConstTensor::contiguous(other.partial_lse.data(), DType::kF32, {3, 2, 5});
  call.partial_lse = call.partial_lse.transposed(1, 2);
  call.lse = Tensor::contiguous(other.lse.data(), DType::kF32, {2, 5}).transposed(0, 1);
  call.lse_base = LogBase::k2;
  const Status status = merge_states(call, kOptions);
  ASSERT_TRUE(status) << status.message();
  for (size_t i = 0; i < states.out.size(); ++i) ASSERT_NEAR(other.out[i], states.out[i], 1e-5);
  for (size_t row = 0; row < 5; ++row) {
    for (size_t h = 0; h < 2; ++h) {
      ASSERT_NEAR(other.lse[h * 5 + row] * std::numbers::ln2_v<float>, states.lse[row * 2 + h],
                  1e-5);
    }
  }
}

TEST(MergeStates, skipped_rows_keep_what_they_hold) {
  States states(3, 4, 2, 24), masked(3, 4, 2, 24);
  ASSERT_TRUE(merge_states(states.call(), kOptions));
  std::fill(masked.out.begin(), masked.out.end(), -7.0F);
  std::fill(masked.lse.begin(), masked.lse.end(), -7.0F);
  const std::vector<uint8_t> mask{1, 0, 1, 0};
  MergeStates call = masked.call();
  call.row_mask = mask;
  ASSERT_TRUE(merge_states(call, kOptions));
  for (size_t i = 0; i < masked.out.size(); ++i) {
    EXPECT_EQ(masked.out[i], mask[i / 48] != 0 ? states.out[i] : -7.0F);
  }
  for (size_t i = 0; i < masked.lse.size(); ++i) {
    EXPECT_EQ(masked.lse[i], mask[i / 2] != 0 ? states.lse[i] : -7.0F);
  }
}

TEST(MergeStates, strides_and_16_bit_parts) {
  constexpr int64_t kParts = 2, kRows = 3, kHeads = 2, kDim = 16;
  std::mt19937 random(9);
  std::normal_distribution<float> normal;
  // [rows, heads, parts, dim + 3] in memory, seen as [parts, rows, heads, dim].
  std::vector<uint16_t> partial(kRows * kHeads * kParts * (kDim + 3));
  for (uint16_t& x : partial) x = core::float_to_bf16(normal(random));
  std::vector<float> partial_lse(kParts * kRows * kHeads);
  for (float& x : partial_lse) x = normal(random);
  ConstTensor view{.data = partial.data(), .dtype = DType::kBF16, .rank = 4};
  view.shape = {kParts, kRows, kHeads, kDim};
  view.strides = {kDim + 3, kHeads * kParts * (kDim + 3), kParts * (kDim + 3), 1};
  std::vector<uint16_t> out(kRows * kHeads * kDim, 0xffff);
  const MergeStates call{.partial_out = view,
                         .partial_lse = ConstTensor::contiguous(partial_lse.data(), DType::kF32,
                                                                {kParts, kRows, kHeads}),
                         .out = Tensor::contiguous(out.data(), DType::kF16, {kRows, kHeads, kDim})};
  ASSERT_TRUE(merge_states(call, kOptions));
  for (int64_t row = 0; row < kRows * kHeads; ++row) {
    const double a = std::exp(double{partial_lse[static_cast<size_t>(row)]});
    const double b = std::exp(double{partial_lse[static_cast<size_t>(kRows * kHeads + row)]});
    for (int64_t c = 0; c < kDim; ++c) {
      const auto base = static_cast<size_t>(row * kParts * (kDim + 3) + c);
      const double x = core::bf16_to_float(partial[base]);
      const double y = core::bf16_to_float(partial[base + kDim + 3]);
      const double expected = (a * x + b * y) / (a + b);
      ASSERT_NEAR(core::f16_to_float(out[static_cast<size_t>(row * kDim + c)]), expected,
                  std::abs(expected) * 0x1p-10 + 1e-6);
    }
  }
}

}  // namespace
}  // namespace pagoda
