// The reference of a sampled row, and the comparison.
//
// Tolerances. With standard normal q, k and v the softmax is nearly flat, so every key matters
// about equally: a wrong page of 64 among n keys changes a row by about sqrt(2 * 64 / n) of its
// root mean square, 3 % at n = 126,195 (the longest prompt of the Mooncake trace). A 16-bit kernel
// that rounds P and O is off by about 0.2 %. The limits stand between the two.
#include "cli/replay/row_check.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>

namespace pagoda::replay {

namespace {

struct Scores {
  std::vector<double> values;  // of keys [first, position]
  double max = 0;              // the sink included
};

Scores compute_scores(const ModelShape& model, const Synthesis& synthesis,
                      const std::vector<uint64_t>& tokens, const CheckedRow& row) {
  const int32_t kv_head = row.q_head / (model.num_q_heads / model.num_kv_heads);
  const float* q = synthesis.values(Operand::kQuery, tokens.back(), row.layer, row.q_head);
  Scores scores;
  scores.values.reserve(tokens.size());
  scores.max = model.has_sinks ? double{synthesis.sinks()[static_cast<size_t>(row.q_head)]}
                               : -std::numeric_limits<double>::infinity();
  for (const uint64_t token : tokens) {
    const float* k = synthesis.values(Operand::kKey, token, row.layer, kv_head);
    double dot = 0;
    for (int32_t d = 0; d < model.head_dim; ++d) dot += double{q[d]} * double{k[d]};
    double score = dot * double{model.scale()};
    if (model.softcap > 0) score = model.softcap * std::tanh(score / model.softcap);
    scores.values.push_back(score);
    scores.max = std::max(scores.max, score);
  }
  return scores;
}

}  // namespace

RowReference reference_row(const ModelShape& model, const Synthesis& synthesis,
                           const RequestContent& content, const CheckedRow& row) {
  const bool is_windowed = model.layer_kind(row.layer) == 1;
  const int64_t first = is_windowed ? std::max<int64_t>(0, row.position - model.window + 1) : 0;
  std::vector<uint64_t> tokens;  // the visible ones
  tokens.reserve(static_cast<size_t>(row.position + 1 - first));
  for (int64_t p = first; p <= row.position; ++p) tokens.push_back(content.token_key(p));

  const Scores scores = compute_scores(model, synthesis, tokens, row);
  const int32_t kv_head = row.q_head / (model.num_q_heads / model.num_kv_heads);
  RowReference result{.out = std::vector<double>(static_cast<size_t>(model.head_dim))};
  double sum = 0;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const float* v = synthesis.values(Operand::kValue, tokens[i], row.layer, kv_head);
    const double p = std::exp(scores.values[i] - scores.max);
    sum += p;
    for (size_t d = 0; d < result.out.size(); ++d) result.out[d] += p * double{v[d]};
  }
  if (model.has_sinks) {
    sum += std::exp(double{synthesis.sinks()[static_cast<size_t>(row.q_head)]} - scores.max);
  }
  for (double& value : result.out) value /= sum;
  result.lse = scores.max + std::log(sum);
  return result;
}

RowTolerance tolerance(DType dtype) {
  if (dtype == DType::kF32) return {.rms = 1e-4, .element = 5e-4, .lse = 1e-4};
  return {.rms = 0.012, .element = 0.06, .lse = 5e-3};
}

std::string compare(const RowReference& reference, std::span<const float> out, float lse,
                    DType dtype) {
  const RowTolerance limit = tolerance(dtype);
  double squares = 0, error_squares = 0, largest = 0;
  for (size_t d = 0; d < reference.out.size(); ++d) {
    const double error = double{out[d]} - reference.out[d];
    if (!std::isfinite(error)) return fmt::format("element {} is {}", d, out[d]);
    squares += reference.out[d] * reference.out[d];
    error_squares += error * error;
    largest = std::max(largest, std::abs(error));
  }
  const auto count = static_cast<double>(reference.out.size());
  const double scale = std::sqrt(squares / count);
  const double rms = std::sqrt(error_squares / count);
  if (rms > limit.rms * scale) {
    return fmt::format("the error is {:.3g} of the row's size; limit {:.3g}", rms / scale,
                       limit.rms);
  }
  if (largest > limit.element * scale) {
    return fmt::format("an element is off by {:.3g} of the row's size; limit {:.3g}",
                       largest / scale, limit.element);
  }
  if (!(std::abs(double{lse} - reference.lse) <= limit.lse)) {
    return fmt::format("the LSE is {}, expected {:.6g} within {:.1g}", lse, reference.lse,
                       limit.lse);
  }
  return {};
}

}  // namespace pagoda::replay
