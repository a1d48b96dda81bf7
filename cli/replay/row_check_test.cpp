// The second computation of a row against the library's oracle; and that it detects a wrong page, a
// missing key and an unwritten row.
#include "cli/replay/row_check.hpp"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>

#include "backends/cpu/reference.hpp"
#include "core/element.hpp"
#include "engine/validate.hpp"

namespace pagoda::replay {
namespace {

constexpr uint64_t kSeed = 11;

RequestContent content(uint64_t id, int64_t index = 0) {
  TraceRequest request{.input_length = 512, .output_length = 1, .hash_ids = {id}};
  return {request, index};
}

struct Row {
  std::vector<float> out;
  float lse = 0;
};

// Every key and value of `keys`, computed by cpu::reference_row(); the query is row.position's.
Row oracle(const ModelShape& model, const Synthesis& synthesis, const std::vector<uint64_t>& keys,
           uint64_t query_key, const CheckedRow& row) {
  const int64_t n = std::ssize(keys);
  const int32_t kv_head = row.q_head / (model.num_q_heads / model.num_kv_heads);
  std::vector<float> k, v, unused(static_cast<size_t>(model.head_dim));
  const auto add = [&](std::vector<float>& to, Operand operand, uint64_t token) {
    const float* from = synthesis.values(operand, token, row.layer, kv_head);
    to.insert(to.end(), from, from + model.head_dim);
  };
  for (const uint64_t key : keys) {
    add(k, Operand::kKey, key);
    add(v, Operand::kValue, key);
  }
  const float* q = synthesis.values(Operand::kQuery, query_key, row.layer, row.q_head);
  Attention attention;
  attention.q = ConstTensor::contiguous(q, DType::kF32, {1, 1, 1, model.head_dim});
  attention.out = Tensor::contiguous(unused.data(), DType::kF32, {1, 1, 1, model.head_dim});
  attention.kv =
      DenseKV{.k = ConstTensor::contiguous(k.data(), DType::kF32, {1, n, 1, model.head_dim}),
              .v = ConstTensor::contiguous(v.data(), DType::kF32, {1, n, 1, model.head_dim})};
  attention.softmax_scale = model.scale();
  attention.mask = model.mask(model.layer_kind(row.layer));
  attention.score_mod.softcap = model.softcap;
  if (model.has_sinks)
    attention.sinks = std::span(&synthesis.sinks()[static_cast<size_t>(row.q_head)], 1);
  const auto problem = engine::validate(attention, {});
  EXPECT_TRUE(problem.ok()) << problem.status().message();
  std::vector<double> out(static_cast<size_t>(model.head_dim));
  double lse = 0;
  cpu::reference_row(*problem, 0, 0, out.data(), &lse, nullptr);
  Row result{.out = {}, .lse = static_cast<float>(lse)};
  for (const double value : out) result.out.push_back(static_cast<float>(value));
  return result;
}

std::vector<uint64_t> tokens_until(const RequestContent& c, int64_t position) {
  std::vector<uint64_t> keys;
  for (int64_t p = 0; p <= position; ++p) keys.push_back(c.token_key(p));
  return keys;
}

TEST(RowCheck, agrees_with_the_oracle_for_every_known_model_and_kind_of_layer) {
  for (const ModelShape& model : known_models()) {
    for (const int32_t layer : {0, 1}) {
      for (const int64_t position : {0, 1, 100, 127, 128, 700}) {
        const Synthesis synthesis(model, DType::kBF16, DType::kBF16, kSeed);
        const RequestContent c = content(5);
        const CheckedRow row{.position = position, .layer = layer, .q_head = model.num_q_heads - 1};
        const auto reference = reference_row(model, synthesis, c, row, DType::kF32);
        const Row expected =
            oracle(model, synthesis, tokens_until(c, position), c.token_key(position), row);
        EXPECT_EQ(compare(reference, row, expected.out, expected.lse), "")
            << model.name << " layer " << layer << " position " << position;
      }
    }
  }
}

// One page of 64 among `n` keys belongs to another request: the row must fail, and must pass with
// the right page. 16-bit limits, the widest there are.
TEST(RowCheck, one_wrong_page_is_noticed_even_among_many_keys) {
  const ModelShape model = *find_model("llama-3.2-1b");
  const Synthesis synthesis(model, DType::kBF16, DType::kBF16, kSeed);
  const RequestContent mine = content(5), other = content(6, 1);
  for (const int64_t n : {64, 1000, 20000, 126195}) {
    for (const int32_t q_head : {0, 31}) {
      const CheckedRow row{.position = n - 1, .layer = 1, .q_head = q_head};
      std::vector<uint64_t> keys = tokens_until(mine, n - 1);
      const uint64_t query = keys.back();
      const auto reference = reference_row(model, synthesis, mine, row, DType::kBF16);
      const Row right = oracle(model, synthesis, keys, query, row);
      ASSERT_EQ(compare(reference, row, right.out, right.lse), "");
      for (int64_t p = n / 2 - 32; p < n / 2 + 32; ++p)
        keys[static_cast<size_t>(p)] = other.token_key(p);
      const Row wrong = oracle(model, synthesis, keys, query, row);
      EXPECT_NE(compare(reference, row, wrong.out, wrong.lse), "") << n;
    }
  }
}

TEST(RowCheck, lost_keys_unwritten_rows_and_a_wrong_lse_are_noticed) {
  const ModelShape model = *find_model("llama-3.2-1b");
  const Synthesis synthesis(model, DType::kBF16, DType::kBF16, kSeed);
  const RequestContent c = content(5);
  const CheckedRow row{.position = 2000, .layer = 0, .q_head = 3};
  const auto reference = reference_row(model, synthesis, c, row, DType::kBF16);
  std::vector<float> out(reference.out.begin(), reference.out.end());
  const auto lse = static_cast<float>(reference.lse);
  EXPECT_EQ(compare(reference, row, out, lse), "");
  EXPECT_NE(compare(reference, row, out, lse + 1e-4F), "");
  EXPECT_NE(compare(reference, row, out, std::nanf("")), "");
  for (float& x : out) x *= 1.02F;
  EXPECT_NE(compare(reference, row, out, lse), "");
  out[5] = std::nanf("");
  EXPECT_NE(compare(reference, row, out, lse), "");

  std::vector<uint64_t> keys = tokens_until(c, 2000);
  const uint64_t query = keys.back();
  keys.erase(keys.begin() + 100, keys.begin() + 164);
  const Row lost = oracle(model, synthesis, keys, query, row);
  EXPECT_NE(compare(reference, row, lost.out, lost.lse), "");
}

TEST(RowCheck, an_fp8_cache_is_regenerated_with_its_rounding) {
  const ModelShape model = *find_model("llama-3.2-1b");
  const Synthesis synthesis(model, DType::kBF16, DType::kF8E4M3, kSeed);
  const float scale = synthesis.kv_scales().k;
  std::vector<std::byte> row(64 * 2);
  for (uint64_t token = 0; token < 50; ++token) {
    synthesis.write(Operand::kKey, token, 0, 0, row.data());
    const float* values = synthesis.values(Operand::kKey, token, 0, 0);
    for (int64_t d = 0; d < 64; ++d) {
      const float exact = core::load_element(row.data(), DType::kBF16, d);
      EXPECT_EQ(values[d], core::f8e4m3_to_float(core::float_to_f8e4m3(exact / scale)) * scale);
    }
  }
}

TEST(RowCheck, synthesis_is_standard_normal_and_depends_on_everything) {
  const ModelShape model = *find_model("llama-3.2-1b");
  const Synthesis synthesis(model, DType::kF32, DType::kF32, kSeed);
  double sum = 0, squares = 0;
  for (uint64_t token = 0; token < 2000; ++token) {
    const float* k = synthesis.values(Operand::kKey, mix(token), 0, 0);
    for (int d = 0; d < 64; ++d) {
      sum += double{k[d]};
      squares += double{k[d]} * double{k[d]};
    }
  }
  EXPECT_NEAR(sum / 128000, 0, 0.02);
  EXPECT_NEAR(squares / 128000, 1, 0.03);

  const float* base = synthesis.values(Operand::kKey, 1, 0, 0);
  const Synthesis reseeded(model, DType::kF32, DType::kF32, kSeed + 1);
  EXPECT_NE(*synthesis.values(Operand::kKey, 2, 0, 0), *base);
  EXPECT_NE(*synthesis.values(Operand::kKey, 1, 1, 0), *base);
  EXPECT_NE(*synthesis.values(Operand::kKey, 1, 0, 1), *base);
  EXPECT_NE(*synthesis.values(Operand::kValue, 1, 0, 0), *base);
  EXPECT_NE(*reseeded.values(Operand::kKey, 1, 0, 0), *base);
}

}  // namespace
}  // namespace pagoda::replay
