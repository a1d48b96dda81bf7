// The oracle against closed forms and tables worked out by hand. Nothing here was computed by an
// implementation of attention; tests/golden does that.
#include "backends/cpu/reference.hpp"

#include <cmath>
#include <cstdint>
#include <gtest/gtest.h>
#include <limits>
#include <string>
#include <vector>

#include "core/element.hpp"

namespace pagoda::cpu {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// One padded batch over a dense fp32 cache, everything zero to begin with.
struct Small {
  core::Problem problem;
  std::vector<float> q, k, v, out, lse, row_max;
  Mask mask;

  Small(int32_t batch, int32_t rows, int32_t keys, int32_t q_heads = 1, int32_t kv_heads = 1,
        int32_t dim = 8) {
    const auto size = [](int64_t a, int64_t b, int64_t c, int64_t d) {
      return static_cast<size_t>(a * b * c * d);
    };
    q.resize(size(batch, rows, q_heads, dim));
    k.resize(size(batch, keys, kv_heads, dim));
    v.resize(k.size());
    out.assign(q.size(), kNan);
    lse.assign(size(batch, rows, q_heads, 1), kNan);
    row_max = lse;
    core::Problem& p = problem;
    p.batch = batch;
    p.num_q_heads = q_heads;
    p.num_kv_heads = kv_heads;
    p.group = q_heads / kv_heads;
    p.head_dim_qk = p.head_dim_vo = dim;
    p.max_seqlen_q = rows;
    p.max_seqlen_kv = keys;
    p.q = {q.data(), DType::kF32, int64_t{rows} * q_heads * dim, int64_t{q_heads} * dim, dim};
    p.out = p.q;
    p.out.data = out.data();
    p.lse = {lse.data(), DType::kF32, int64_t{rows} * q_heads, q_heads, 1};
    p.row_max = p.lse;
    p.row_max.data = row_max.data();
    p.k = {k.data(), DType::kF32, int64_t{keys} * kv_heads * dim, int64_t{kv_heads} * dim, dim};
    p.v = p.k;
    p.v.data = v.data();
  }
  // Gives key j of every sequence and head the value `of(j)` in all dimensions.
  template <typename F>
  void set_values(F of) {
    const auto stride = static_cast<size_t>(problem.k.row_stride);
    const auto keys = static_cast<size_t>(problem.max_seqlen_kv);
    for (size_t i = 0; i < v.size(); ++i) v[i] = static_cast<float>(of(i / stride % keys));
  }
  // Makes q.k of every row and head with key j equal to s(j).
  template <typename F>
  void set_scores(F s) {
    const auto dim = static_cast<size_t>(problem.head_dim_qk);
    const auto stride = static_cast<size_t>(problem.k.row_stride);
    const auto keys = static_cast<size_t>(problem.max_seqlen_kv);
    for (size_t i = 0; i < q.size(); i += dim) q[i] = 1;
    for (size_t i = 0; i < k.size(); i += dim) k[i] = static_cast<float>(s(i / stride % keys));
  }
  void run() {
    problem.mask = mask.nodes();
    reference_attention(problem);
  }
  // The visible keys of every row of sequence b, head 0: one string of 0 and 1 per row.
  std::vector<std::string> table(int32_t b = 0) {
    problem.mask = mask.nodes();
    std::vector<std::string> rows;
    for (int32_t i = 0; i < problem.seqlen_q(b); ++i) {
      std::string& row = rows.emplace_back();
      for (int32_t j = 0; j < problem.seqlen_kv(b); ++j) {
        row += reference_mask(problem, b, i, 0, j).keep ? '1' : '0';
      }
    }
    return rows;
  }
};

using Table = std::vector<std::string>;

TEST(Reference, zero_scores_give_the_mean_of_v_and_lse_log_n) {
  Small s(1, 2, 5);
  s.set_values([](size_t j) { return j; });
  s.run();
  for (const float o : s.out) EXPECT_FLOAT_EQ(o, 2.0F);
  for (const float l : s.lse) EXPECT_FLOAT_EQ(l, std::log(5.0F));
  for (const float m : s.row_max) EXPECT_EQ(m, 0.0F);
}

TEST(Reference, a_sink_joins_the_denominator_only) {
  Small s(1, 1, 6, 2, 1);
  const float sinks[] = {1.5F, -2.0F};
  s.problem.sinks = sinks;
  s.set_values([](size_t j) { return j + 1; });
  s.run();
  for (size_t h = 0; h < 2; ++h) {
    const double e = std::exp(static_cast<double>(sinks[h]));
    EXPECT_NEAR(s.out[h * 8], 3.5 * 6 / (6 + e), 1e-6);
    EXPECT_NEAR(s.lse[h], std::log(6 + e), 1e-6);
    EXPECT_EQ(s.row_max[h], std::max(0.0F, sinks[h]));
  }
}

TEST(Reference, a_sink_far_above_the_scores_leaves_almost_nothing) {
  Small s(1, 1, 3);
  const float sink = 200;
  s.problem.sinks = {&sink, 1};
  s.set_values([](size_t) { return 1; });
  s.run();
  EXPECT_EQ(s.out[0], 0.0F);  // 3 * exp(-200) is below the smallest float
  EXPECT_EQ(s.lse[0], 200.0F);
}

TEST(Reference, one_key_gives_its_value_whatever_the_score) {
  for (const float score : {-1e4F, 0.0F, 1e4F}) {
    Small s(1, 1, 1);
    s.set_scores([&](size_t) { return score; });
    s.set_values([](size_t) { return 7; });
    s.run();
    EXPECT_EQ(s.out[0], 7.0F);
    EXPECT_EQ(s.lse[0], score);
    EXPECT_EQ(s.row_max[0], score);
  }
}

TEST(Reference, uniform_v_comes_back_whatever_the_scores) {
  Small s(1, 1, 9);
  s.set_scores([](size_t j) { return std::sin(static_cast<double>(j)) * 5; });
  s.set_values([](size_t) { return -3; });
  s.run();
  for (const float o : s.out) EXPECT_FLOAT_EQ(o, -3.0F);
}

TEST(Reference, two_keys_are_weighted_by_the_logistic_function) {
  Small s(1, 1, 2);
  s.problem.softmax_scale = 0.5F;
  s.set_scores([](size_t j) { return j == 0 ? 0 : 2; });
  s.set_values([](size_t j) { return j; });
  s.run();
  EXPECT_NEAR(s.out[0], 1 / (1 + std::exp(-1.0)), 1e-7);
  EXPECT_NEAR(s.lse[0], std::log(1 + std::exp(1.0)), 1e-6);
}

TEST(Reference, first_causal_row_sees_the_first_key_only) {
  Small s(1, 4, 4);
  s.mask = Mask::causal();
  s.set_values([](size_t j) { return j; });
  s.run();
  const float expected[] = {0, 0.5F, 1, 1.5F};
  for (size_t i = 0; i < 4; ++i) EXPECT_FLOAT_EQ(s.out[i * 8], expected[i]);
}

TEST(Reference, nan_in_hidden_keys_and_values_does_not_spread) {
  Small s(1, 2, 3);
  s.mask = Mask::causal();  // rows at positions 1 and 2
  s.set_values([](size_t j) { return j; });
  for (size_t d = 0; d < 8; ++d) s.k[16 + d] = s.v[16 + d] = kNan;
  s.run();
  EXPECT_FLOAT_EQ(s.out[0], 0.5F);
  EXPECT_TRUE(std::isnan(s.out[8]));  // row 1 sees key 2: its NaN must not vanish either
  EXPECT_TRUE(std::isnan(s.lse[1]));
}

TEST(Reference, rows_without_keys_give_zero_and_minus_infinity) {
  Small s(1, 3, 2, 2, 1);
  s.mask = Mask::causal();  // row 0 at position -1
  s.set_values([](size_t) { return 1; });
  s.run();
  EXPECT_EQ(s.out[0], 0.0F);
  EXPECT_EQ(s.lse[0], -kInfinity);
  EXPECT_EQ(s.row_max[0], -kInfinity);
  EXPECT_EQ(s.out[16], 1.0F);
  const float sinks[] = {0.25F, -4};
  s.problem.sinks = sinks;
  s.run();
  EXPECT_EQ(s.out[0], 0.0F);
  EXPECT_EQ(s.lse[0], 0.25F);
  EXPECT_EQ(s.lse[1], -4.0F);
  EXPECT_EQ(s.row_max[1], -4.0F);
}

TEST(Reference, padded_rows_ignore_even_the_sink) {
  Small s(2, 2, 2);
  const int32_t valid[] = {2, 1};
  const float sink = 1;
  s.problem.seqlens_q_valid = valid;
  s.problem.sinks = {&sink, 1};
  for (size_t d = 0; d < 8; ++d) s.q[24 + d] = kNan;
  s.run();
  EXPECT_TRUE(std::isfinite(s.lse[2]));
  EXPECT_EQ(s.out[24], 0.0F);
  EXPECT_EQ(s.lse[3], -kInfinity);
  EXPECT_EQ(s.row_max[3], -kInfinity);
}

TEST(Reference, masks_have_the_documented_tables) {
  Small s(1, 3, 5);  // rows at positions 2, 3, 4
  s.mask = Mask::none();
  EXPECT_EQ(s.table(), (Table{"11111", "11111", "11111"}));
  s.mask = Mask::causal();
  EXPECT_EQ(s.table(), (Table{"11100", "11110", "11111"}));
  s.mask = Mask::window(1, 0);
  EXPECT_EQ(s.table(), (Table{"01100", "00110", "00011"}));
  s.mask = Mask::window(-1, 1);
  EXPECT_EQ(s.table(), (Table{"11110", "11111", "11111"}));
  s.mask = Mask::window(0, -1);
  EXPECT_EQ(s.table(), (Table{"00111", "00011", "00001"}));
  s.mask = Mask::chunked(3);
  EXPECT_EQ(s.table(), (Table{"11100", "00011", "00011"}));
  s.mask = Mask::chunked(3) & Mask::causal();
  EXPECT_EQ(s.table(), (Table{"11100", "00010", "00011"}));
  const int32_t valid[] = {4};
  s.mask = Mask::padding(valid);
  EXPECT_EQ(s.table(), (Table{"11110", "11110", "11110"}));
  s.mask = Mask::window(0, 0) | (Mask::padding(valid) & Mask::chunked(2));
  EXPECT_EQ(s.table(), (Table{"00110", "00110", "00001"}));
}

TEST(Reference, negative_positions_round_chunks_down) {
  Small s(1, 4, 2);  // rows at positions -2, -1, 0, 1
  s.mask = Mask::chunked(2);
  EXPECT_EQ(s.table(), (Table{"00", "00", "11", "11"}));
}

TEST(Reference, cache_lengths_move_the_rows) {
  Small s(1, 2, 5);
  const int32_t cache[] = {1};
  s.problem.cache_lengths = cache;
  s.mask = Mask::causal();
  EXPECT_EQ(s.table(), (Table{"11000", "11100"}));
}

TEST(Reference, bits_are_read_by_row_and_word) {
  Small s(2, 2, 34);
  const uint32_t words[] = {9U, 9U, 9U, 0x80000001U, 2U, 6U, 1U, 0U, 3U, ~0U, 0U};
  const int64_t offsets[] = {3, 7, 11};
  s.mask = Mask::bits(words, offsets);
  const Table first = s.table(0);
  EXPECT_EQ(first[0], "1" + std::string(30, '0') + "101");
  EXPECT_EQ(first[1], "011" + std::string(29, '0') + "10");
  EXPECT_EQ(s.table(1)[0], std::string(32, '0') + "11");
  EXPECT_EQ(s.table(1)[1], std::string(32, '1') + "00");
}

TEST(Reference, functor_gets_every_coordinate) {
  Small s(2, 2, 4, 2, 2);
  std::vector<std::string> seen;
  s.mask = Mask::functor(
      [](void* context, int32_t b, int32_t h, int64_t q, int64_t k) {
        static_cast<std::vector<std::string>*>(context)->push_back(
            std::to_string(b) + std::to_string(h) + std::to_string(q) + std::to_string(k));
        return k == 1;
      },
      &seen);
  s.problem.mask = s.mask.nodes();
  EXPECT_FALSE(reference_mask(s.problem, 1, 0, 1, 3).keep);
  EXPECT_TRUE(reference_mask(s.problem, 0, 1, 0, 1).keep);
  EXPECT_EQ(seen, (std::vector<std::string>{"1123", "0031"}));
}

TEST(Reference, additive_bias_broadcasts_and_masks_with_minus_infinity) {
  Small s(1, 2, 3, 2, 1);
  const float bias[] = {0, 1, -std::numeric_limits<float>::infinity(), 2, 0, 0};
  s.mask = Mask::additive(ConstTensor::contiguous(bias, DType::kF32, {1, 1, 2, 3}));
  for (size_t d = 0; d < 8; ++d) s.v[16 + d] = kNan;
  s.v[0] = 1;
  s.run();
  for (const size_t h : {0U, 1U}) {
    EXPECT_NEAR(s.out[h * 8], 1 / (1 + std::exp(1.0)), 1e-7);
    EXPECT_NEAR(s.lse[h], std::log(1 + std::exp(1.0)), 1e-6);
  }
  s.mask = Mask::additive(ConstTensor::contiguous(bias, DType::kF32, {1, 2, 3})) & Mask::causal();
  s.problem.mask = s.mask.nodes();
  EXPECT_EQ(reference_mask(s.problem, 0, 0, 1, 1).bias, 1);
  EXPECT_FALSE(reference_mask(s.problem, 0, 0, 1, 2).keep);
  EXPECT_EQ(reference_mask(s.problem, 0, 1, 1, 0).bias, 2);
}

TEST(Reference, biases_of_both_operands_of_and_add_up) {
  Small s(1, 1, 3, 2, 1);  // the row at position 2
  const float additive[] = {10, 20, 30};
  const float table[] = {1, 2, 3, 4, 5, 6};  // extent 1: k - q = -1, 0, 1
  s.mask = Mask::additive(ConstTensor::contiguous(additive, DType::kF32, {1, 1, 3})) &
           Mask::relative_bias(ConstTensor::contiguous(table, DType::kF32, {2, 3}));
  s.problem.mask = s.mask.nodes();
  EXPECT_EQ(reference_mask(s.problem, 0, 0, 0, 0).bias, 10);  // |k - q| > extent
  EXPECT_EQ(reference_mask(s.problem, 0, 0, 0, 1).bias, 21);
  EXPECT_EQ(reference_mask(s.problem, 0, 0, 1, 2).bias, 35);
}

TEST(Reference, alibi_penalises_by_distance) {
  Small s(1, 1, 2);  // the row at position 1: biases -0.5 and 0
  const float slope = 0.5F;
  s.problem.score_mod.alibi_slopes = {&slope, 1};
  s.set_values([](size_t j) { return j; });
  s.run();
  EXPECT_NEAR(s.out[0], 1 / (1 + std::exp(-0.5)), 1e-7);
}

TEST(Reference, score_mods_apply_in_the_documented_order) {
  Small s(1, 1, 2);
  const float slope = 0.5F;
  const float bias[] = {3, 0};
  s.problem.softmax_scale = 2;
  s.problem.score_mod.softcap = 4;
  s.problem.score_mod.alibi_slopes = {&slope, 1};
  s.problem.score_mod.functor = [](void*, float score, int32_t, int32_t, int64_t, int64_t k) {
    return k == 0 ? 2 * score : -std::numeric_limits<float>::infinity();
  };
  s.mask = Mask::additive(ConstTensor::contiguous(bias, DType::kF32, {1, 1, 2}));
  s.set_scores([](size_t) { return 1.5; });
  s.run();
  EXPECT_NEAR(s.lse[0], 2 * (4 * std::tanh(3.0 / 4) - 0.5 + 3), 1e-6);
}

TEST(Reference, heads_of_a_group_share_their_key_head) {
  Small s(1, 1, 1, 6, 2);
  for (size_t d = 0; d < 8; ++d) s.v[d] = 1, s.v[8 + d] = 2;
  s.run();
  for (size_t h = 0; h < 6; ++h) EXPECT_EQ(s.out[h * 8], h < 3 ? 1.0F : 2.0F);
}

TEST(Reference, fp8_scales_are_linear_and_per_head_ones_win) {
  Small s(1, 1, 2, 2, 2);
  std::vector<uint8_t> k8(s.k.size()), v8(s.v.size());
  for (size_t i = 0; i < k8.size(); ++i) {
    const size_t key = i / 16;
    k8[i] = core::float_to_f8e4m3(i % 8 == 0 ? static_cast<float>(key) : 0.0F);
    v8[i] = core::float_to_f8e4m3(i < 16 ? 0.0F : 1.5F);
  }
  for (size_t h = 0; h < 2; ++h) s.q[h * 8] = 1;
  s.problem.k.data = k8.data();
  s.problem.v.data = v8.data();
  s.problem.k.dtype = s.problem.v.dtype = DType::kF8E4M3;
  s.problem.k_scales.shared = 3;
  s.problem.v_scales.shared = 2;
  const float per_head[] = {1, 10};
  s.problem.v_scales.values = per_head;
  s.problem.v_scales.head_stride = 1;
  s.run();  // scores 0 and 3, values 0 and 1.5 * scale
  const double weight = 1 / (1 + std::exp(-3.0));
  EXPECT_NEAR(s.out[0], weight * 1.5, 1e-6);
  EXPECT_NEAR(s.out[8], weight * 15, 1e-5);
  EXPECT_NEAR(s.lse[1], std::log(1 + std::exp(3.0)), 1e-6);
}

TEST(Reference, pages_are_followed_through_both_kinds_of_table) {
  Small s(2, 1, 6);                                           // the cache as six pages of two rows
  s.set_values([n = 0](size_t) mutable { return n++ / 8; });  // slot number
  core::Problem& p = s.problem;
  p.kv_kind = core::KVKind::kPaged;
  p.page_size = 2;
  p.k.outer_stride = p.v.outer_stride = 16;
  const int32_t pages[] = {4, 1, -7, 2, 0, -7};
  const int32_t lengths[] = {3, 4};
  p.seqlens_kv = lengths;
  p.block_table = {pages, 2, 3, 3};
  s.run();
  EXPECT_FLOAT_EQ(s.out[0], (8 + 9 + 2) / 3.0F);
  EXPECT_FLOAT_EQ(s.out[8], (4 + 5 + 0 + 1) / 4.0F);
  const int32_t indptr[] = {0, 1, 1};
  const int32_t indices[] = {5};
  const int32_t last[] = {1, 99};
  p.block_table = {};
  p.seqlens_kv = {};
  p.csr = {indptr, indices, last};
  s.run();
  EXPECT_FLOAT_EQ(s.out[0], 10);
  EXPECT_EQ(s.lse[1], -kInfinity);
}

TEST(Reference, ragged_queries_and_keys_have_their_own_offsets) {
  Small s(1, 3, 4);
  s.set_values([](size_t j) { return j; });
  core::Problem& p = s.problem;
  const int32_t q_offsets[] = {0, 2, 2, 3}, kv_offsets[] = {0, 1, 3, 4};
  p.batch = 3;
  p.is_ragged = true;
  p.max_seqlen_q = 2;
  p.q.sequence_stride = p.out.sequence_stride = p.lse.sequence_stride = 0;
  p.row_max.sequence_stride = 0;
  p.cu_seqlens_q = q_offsets;
  p.cu_seqlens_kv = kv_offsets;
  p.kv_kind = core::KVKind::kRagged;
  s.run();
  EXPECT_FLOAT_EQ(s.out[0], 0);
  EXPECT_FLOAT_EQ(s.out[8], 0);
  EXPECT_FLOAT_EQ(s.out[16], 3);
}

TEST(Reference, sixteen_bit_outputs_are_rounded_to_nearest) {
  Small s(1, 1, 3);
  std::vector<uint16_t> half(8);
  s.problem.out.data = half.data();
  s.problem.out.dtype = DType::kBF16;
  s.set_values([](size_t j) { return j == 0 ? 1 : 0; });
  s.run();
  EXPECT_EQ(half[0], 0x3eab);  // 1/3
  s.problem.out.dtype = DType::kF16;
  s.run();
  EXPECT_EQ(half[0], 0x3555);
}

}  // namespace
}  // namespace pagoda::cpu
