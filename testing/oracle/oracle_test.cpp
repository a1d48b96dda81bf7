// The oracle must accept a correct kernel and detect a wrong one. Every test takes the result of
// the naive kernel in the precision under test and introduces one error.
#include <cmath>
#include <cstdint>
#include <functional>
#include <gtest/gtest.h>
#include <limits>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "backends/cpu/reference.hpp"
#include "core/element.hpp"
#include "engine/validate.hpp"
#include "testing/oracle/comparison.hpp"
#include "testing/oracle/naive.hpp"
#include "testing/oracle/problem_row.hpp"
#include "testing/oracle/row.hpp"

namespace pagoda::oracle {
namespace {

constexpr int64_t kRows = 24, kKeys = 300, kHeads = 4, kKVHeads = 2, kDim = 64;
constexpr int64_t kTile = 64;  // keys of a kernel's tile

// A call whose rows see 277 to 300 keys, so that one key has little weight and a fault in it is
// small. Q, K and V are numbers of the type in fp32.
struct Call {
  Precision precision;
  std::vector<float> q, k, v, sinks;
  float scale = 0.125F, v_scale = 1;

  explicit Call(DType dtype)
      : precision{dtype, dtype == DType::kF8E4M3 ? DType::kBF16 : dtype},
        q(kRows * kHeads * kDim),
        k(kKeys * kKVHeads * kDim),
        v(k.size()),
        sinks(kHeads) {
    std::mt19937 random(7);
    std::normal_distribution<float> normal;
    for (std::vector<float>* values : {&q, &k, &v}) {
      for (float& x : *values) x = core::rounded_to(dtype, normal(random));
    }
    for (float& x : sinks) x = 2 + normal(random);
  }
  [[nodiscard]] core::Problem problem() {  // valid until the next call
    attention = {};
    attention.q = ConstTensor::contiguous(q.data(), DType::kF32, {1, kRows, kHeads, kDim});
    attention.out = Tensor::contiguous(unused.data(), DType::kF32, {1, kRows, kHeads, kDim});
    attention.kv =
        DenseKV{.k = ConstTensor::contiguous(k.data(), DType::kF32, {1, kKeys, kKVHeads, kDim}),
                .v = ConstTensor::contiguous(v.data(), DType::kF32, {1, kKeys, kKVHeads, kDim})};
    attention.mask = mask;
    attention.softmax_scale = scale;
    attention.sinks = sinks;
    const Result<core::Problem> valid = engine::validate(attention, {});
    EXPECT_TRUE(valid.ok()) << valid.status().message();
    core::Problem problem = *valid;
    problem.v_scales.shared =
        v_scale;  // K and V are canonical: fp32 whatever they were quantised to
    return problem;
  }

  Attention attention;
  std::vector<float> unused = std::vector<float>(kRows * kHeads * kDim);
  Mask mask = Mask::causal();
};

// The outputs of a kernel.
struct Results {
  std::vector<float> out = std::vector<float>(kRows * kHeads * kDim);
  std::vector<float> lse = std::vector<float>(kRows * kHeads), row_max = lse;

  // The results of the naive kernel in the call's precision.
  static Results of(Call& call) {
    Results results;
    const core::Problem problem = call.problem();
    for (int32_t row = 0; row < kRows; ++row) {
      naive_row(problem, call.precision, 0, row, &results.out[row * kHeads * kDim],
                &results.lse[row * kHeads], &results.row_max[row * kHeads]);
    }
    return results;
  }
  void round(DType dtype) {
    for (float& x : out) x = core::rounded_to(dtype, x);
  }
};

// Compares `results` with the expected rows of `call`; without statistics only O.
Comparison compare(Call& call, const Results& results, bool has_statistics = true) {
  Comparison comparison;
  const core::Problem problem = call.problem();
  for (int32_t row = 0; row < kRows; ++row) {
    const std::vector<ExpectedRow> expected = expect_rows(problem, call.precision, 0, row);
    for (int32_t head = 0; head < kHeads; ++head) {
      const auto at = static_cast<size_t>(row * kHeads + head);
      comparison.add(expected[static_cast<size_t>(head)], {0, row, head},
                     std::span(results.out).subspan(at * kDim, kDim),
                     has_statistics ? &results.lse[at] : nullptr,
                     has_statistics ? &results.row_max[at] : nullptr);
    }
  }
  comparison.finish();
  return comparison;
}

class Oracle : public testing::TestWithParam<DType> {
 protected:
  // O as the naive kernel gives it for another call, against the limits of this one.
  void expect_seen(Call& wrong, const char* what) {
    const Comparison comparison = compare(right_, Results::of(wrong), false);
    EXPECT_GT(comparison.mismatches(), 0U) << what << ": " << comparison.shares().worst();
  }
  [[nodiscard]] bool is_of_8_bits() const { return GetParam() == DType::kF8E4M3; }
  Call right_{GetParam()};
};

TEST_P(Oracle, admits_a_naive_kernel_with_room_to_spare) {
  const Comparison comparison = compare(right_, Results::of(right_));
  EXPECT_EQ(comparison.message(), "");
  EXPECT_LE(comparison.shares().worst(), 0.75);
  EXPECT_EQ(comparison.mismatches(), 0U);
  EXPECT_GT(comparison.checked(), static_cast<uint64_t>(kRows * kHeads * (kDim + 2)));
}

TEST_P(Oracle, expects_what_the_reference_gives) {
  right_.v_scale = 0.5F;
  const core::Problem problem = right_.problem();
  std::vector<double> out(kHeads * kDim), lse(kHeads), row_max(kHeads);
  cpu::reference_row(problem, 0, 5, out.data(), lse.data(), row_max.data());
  const std::vector<ExpectedRow> rows = expect_rows(problem, right_.precision, 0, 5);
  for (size_t h = 0; h < kHeads; ++h) {
    EXPECT_EQ(rows[h].lse, lse[h]);
    EXPECT_EQ(rows[h].row_max, row_max[h]);
    for (size_t d = 0; d < kDim; ++d) EXPECT_EQ(rows[h].out[d], out[h * kDim + d]);
  }
}

TEST_P(Oracle, sees_an_output_multiplied_by_1_02_and_by_1_01) {
  for (const float factor : {1.02F, 1.01F, 0.99F, 0.98F}) {
    Results results = Results::of(right_);
    for (float& x : results.out) x *= factor;
    results.round(right_.precision.out);
    EXPECT_GT(compare(right_, results, false).shares().gain, 1) << factor;
  }
}

// One row in a case of 96. Where P has three bits, its errors of 2.6 % hide a factor up to 1.07.
TEST_P(Oracle, sees_a_single_row_multiplied_by_1_02) {
  Results results = Results::of(right_);
  const float factor = is_of_8_bits() ? 1.08F : 1.02F;
  for (size_t d = 0; d < kDim; ++d) results.out[(17 * kHeads + 1) * kDim + d] *= factor;
  results.round(right_.precision.out);
  const Comparison comparison = compare(right_, results, false);
  EXPECT_GT(comparison.shares().row_rms, 1);
  EXPECT_NE(comparison.message().find(" of sequence 0, row 17, head 1 is "), std::string::npos)
      << comparison.message();
}

TEST_P(Oracle, sees_a_softmax_scale_of_1_02) {
  Call wrong = right_;
  wrong.scale *= 1.02F;
  expect_seen(wrong, "scale");
}

TEST_P(Oracle, sees_a_v_scale_of_1_01) {
  Call wrong = right_;
  wrong.v_scale = 1.01F;
  expect_seen(wrong, "V scale");
}

// One of about 300: its weight is 0.3 %.
TEST_P(Oracle, sees_one_key_dropped_in_every_row) {
  Call wrong = right_;
  for (int64_t d = 0; d < kKVHeads * kDim; ++d) wrong.v[100 * kKVHeads * kDim + d] = 0;
  expect_seen(wrong, "P of a key is 0, its share of the sum is not");
  wrong = right_;
  for (int64_t i = 101 * kKVHeads * kDim; i < kKeys * kKVHeads * kDim; ++i) {
    wrong.v[i - kKVHeads * kDim] = right_.v[i];
    wrong.k[i - kKVHeads * kDim] = right_.k[i];
  }
  expect_seen(wrong, "a key is skipped, and the one beyond the diagonal seen instead");
}

TEST_P(Oracle, sees_one_key_counted_twice) {
  Call wrong = right_;
  for (int64_t d = 0; d < kKVHeads * kDim; ++d) wrong.v[100 * kKVHeads * kDim + d] *= 2;
  expect_seen(wrong, "twice in O");
}

TEST_P(Oracle, sees_one_hidden_key) {
  Call wrong = right_;
  wrong.mask = Mask::window(-1, 1);
  expect_seen(wrong, "one key beyond the diagonal");
}

TEST_P(Oracle, sees_a_sink_added_twice) {
  Call wrong = right_;
  for (float& sink : wrong.sinks) sink += std::log(2.0F);
  expect_seen(wrong, "sink");
}

TEST_P(Oracle, sees_the_v_of_the_neighbouring_tile) {
  Call wrong = right_;
  for (int64_t i = 0; i < kTile * kKVHeads * kDim; ++i) {
    wrong.v[kTile * kKVHeads * kDim + i] = right_.v[i];
  }
  expect_seen(wrong, "stale V");
}

TEST_P(Oracle, sees_rows_of_p_that_were_not_rescaled) {
  // The weights of the first tile are larger by a tenth.
  Call wrong = right_;
  for (int64_t i = 0; i < kTile * kKVHeads * kDim; ++i) wrong.v[i] *= 1.1F;
  expect_seen(wrong, "rescale");
}

TEST_P(Oracle, sees_an_lse_off_by_2_percent_and_by_1e_4) {
  for (const float factor : {1.02F, 1.0001F}) {
    Results results = Results::of(right_);
    results.lse[5] *= factor;
    const Comparison comparison = compare(right_, results);
    EXPECT_EQ(comparison.mismatches(), 1U);
    EXPECT_EQ(comparison.message().find("lse of sequence 0, row 1, head 1 is"), 0U);
  }
}

TEST_P(Oracle, sees_one_wrong_element) {
  Results results = Results::of(right_);
  const double norm = std::abs(results.out[3 * kDim + 9]) + 0.05;
  results.out[3 * kDim + 9] += static_cast<float>(is_of_8_bits() ? norm : 0.1 * norm);
  EXPECT_GT(compare(right_, results, false).shares().element, 1);
}

TEST_P(Oracle, sees_one_nan_and_one_row_that_is_not_written) {
  Results results = Results::of(right_);
  results.out[11] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(compare(right_, results).shares().element, std::numeric_limits<double>::infinity());
  results = Results::of(right_);
  for (size_t d = 0; d < kDim; ++d) results.out[d] = 0;
  EXPECT_GT(compare(right_, results).mismatches(), 0U);
}

INSTANTIATE_TEST_SUITE_P(Types, Oracle,
                         testing::Values(DType::kF32, DType::kF16, DType::kBF16, DType::kF8E4M3),
                         [](const auto& type) { return std::string(name(type.param)); });

TEST(ExpectRow, without_keys_demands_zeros) {
  const ExpectedRow row = expect_row({}, 4, {DType::kBF16, DType::kBF16});
  EXPECT_EQ(row.out, std::vector<double>(4, 0.0));
  EXPECT_EQ(row.lse, -std::numeric_limits<double>::infinity());
  const std::vector<float> zeros(4, 0), tiny{0, 0, 1e-30F, 0};
  const float lse = -std::numeric_limits<float>::infinity(), low = -1e30F;
  Comparison right, wrong, wrong_lse;
  right.add(row, {}, zeros, &lse);
  right.finish();
  EXPECT_EQ(right.message(), "");
  wrong.add(row, {}, tiny, &lse);
  EXPECT_EQ(wrong.mismatches(), 1U);
  wrong_lse.add(row, {}, zeros, &low);
  EXPECT_EQ(wrong_lse.mismatches(), 1U);
}

TEST(ExpectRow, with_a_sink_alone_is_the_sink) {
  const ExpectedRow row = expect_row({}, 4, {DType::kBF16, DType::kBF16}, 1, 3.5);
  EXPECT_EQ(row.lse, 3.5);
  EXPECT_EQ(row.row_max, 3.5);
  EXPECT_EQ(row.element, std::vector<double>(4, 0.0));
}

// One key: P is 1 and O is V, which only rounding of O may change.
TEST(ExpectRow, of_one_key_admits_half_a_unit_of_o_and_not_one) {
  const std::vector<float> v{1.0F, -1.5F, 1.25F, 1.0078125F};
  const VisibleKey key{.score = 2, .magnitude = 2, .value = v.data()};
  const ExpectedRow row = expect_row({&key, 1}, 4, {DType::kBF16, DType::kBF16});
  Comparison right, wrong;
  right.add(row, {}, v);
  EXPECT_EQ(right.message(), "");
  wrong.add(row, {}, std::vector<float>{1.0F, -1.5F, 1.25F, 1.03125F});
  EXPECT_GT(wrong.mismatches(), 0U);
}

// Scores on matrix cores err by 2^-13 of their terms' magnitude with e4m3 queries, and so does P,
// beside its rounding. Two keys of equal weight: one element of O where their V differ.
TEST(ExpectRow, of_e4m3_queries_admits_errors_of_scores_in_o) {
  std::vector<float> v[2] = {std::vector<float>(kDim, 1.0F), std::vector<float>(kDim, 1.0F)};
  v[1][0] = -1;
  const auto mismatches = [&v](double magnitude, DType type, float error) {
    const VisibleKey keys[] = {{.score = 1, .magnitude = magnitude, .value = v[0].data()},
                               {.score = 1, .magnitude = magnitude, .value = v[1].data()}};
    std::vector<float> out(kDim, 1.0F);
    out[0] = error;
    Comparison comparison;
    comparison.add(expect_row(keys, kDim, {type, DType::kBF16}), {}, out);
    return comparison.mismatches();
  };
  const float of_p = 0x1p-4F, of_scores = 300 * 0x1p-13F;
  EXPECT_EQ(mismatches(1, DType::kF8E4M3, of_p), 0U);
  EXPECT_EQ(mismatches(300, DType::kF8E4M3, of_p + of_scores), 0U);
  EXPECT_GT(mismatches(1, DType::kF8E4M3, of_p + of_scores), 0U);
  EXPECT_GT(mismatches(300, DType::kF8E4M3, of_p + 4 * of_scores), 0U);
  EXPECT_GT(mismatches(300, DType::kBF16, of_scores), 0U);
}

// Many rows of two keys each, of equal weight. Errors of rounding that all rows share are no error
// of the case; a factor of 1.02 is.
Comparison compare_rows(int32_t rows, float v_scale, double standard_deviation, float factor) {
  std::mt19937 random(3);
  std::normal_distribution<double> normal(0, standard_deviation);
  Comparison comparison;
  for (int32_t row = 0; row < rows; ++row) {
    std::vector<float> v[2] = {std::vector<float>(kDim), std::vector<float>(kDim)}, out(kDim);
    for (size_t d = 0; d < kDim; ++d) {
      for (std::vector<float>& of : v) of[d] = static_cast<float>(normal(random));
      const float mean = (v[0][d] + v[1][d]) / 2;
      out[d] = core::f8e4m3_to_float(core::float_to_f8e4m3(mean * v_scale * factor));
    }
    const VisibleKey keys[] = {{.score = 1, .magnitude = 1, .value = v[0].data()},
                               {.score = 1, .magnitude = 1, .value = v[1].data()}};
    comparison.add(expect_row(keys, kDim, {DType::kF32, DType::kF8E4M3}, v_scale), {0, row, 0},
                   out);
  }
  comparison.finish();
  return comparison;
}

TEST(Comparison, admits_that_e4m3_rounds_down_more_often_than_up) {
  EXPECT_EQ(compare_rows(3000, 1, 4, 1).message(), "");
  EXPECT_GT(compare_rows(3000, 1, 4, 1.02F).shares().gain, 1);
}

TEST(Comparison, admits_the_same_rounding_in_all_rows_of_one_key) {
  std::vector<float> v(kDim), out(kDim), wrong(kDim);
  for (size_t d = 0; d < kDim; ++d) {  // all are rounded down
    v[d] = 1.0F + static_cast<float>(d) / kDim + 0.0025F;
    out[d] = core::bf16_to_float(core::float_to_bf16(v[d]));
    wrong[d] = core::bf16_to_float(core::float_to_bf16(v[d] * 1.02F));
  }
  const VisibleKey key{.score = 1, .magnitude = 1, .value = v.data()};
  const ExpectedRow row = expect_row({&key, 1}, kDim, {DType::kBF16, DType::kBF16});
  Comparison same, too_large;
  for (int32_t i = 0; i < 1000; ++i) {
    same.add(row, {0, i, 0}, out);
    too_large.add(row, {0, i, 0}, wrong);
  }
  same.finish();
  too_large.finish();
  EXPECT_EQ(same.message(), "");
  EXPECT_GT(too_large.shares().gain, 1);
}

TEST(Comparison, admits_zero_for_rows_below_the_smallest_output) {
  EXPECT_EQ(compare_rows(300, 0x1p-13F, 1, 1).message(), "");
  EXPECT_EQ(compare_rows(300, 0x1p-9F, 1, 1).message(), "");  // mostly denormals
}

}  // namespace
}  // namespace pagoda::oracle
