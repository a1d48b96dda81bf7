// The reference of a sampled row, and the comparison.
//
// With standard normal q, k and v the softmax is nearly flat, so every key matters about equally:
// a wrong page of 64 among n keys changes a row by about sqrt(2 * 64 / n) of its root mean square,
// 3 % at n = 126,195 (the longest prompt of the Mooncake trace). The oracle's limit of a row of
// bf16 is below 1 %.
#include "cli/replay/row_check.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "testing/oracle/comparison.hpp"

namespace pagoda::replay {

namespace {

std::vector<oracle::VisibleKey> visible_keys(const ModelShape& model, const Synthesis& synthesis,
                                             const std::vector<uint64_t>& tokens,
                                             const CheckedRow& row) {
  const int32_t kv_head = row.q_head / (model.num_q_heads / model.num_kv_heads);
  const float* q = synthesis.values(Operand::kQuery, tokens.back(), row.layer, row.q_head);
  std::vector<oracle::VisibleKey> keys;
  keys.reserve(tokens.size());
  for (const uint64_t token : tokens) {
    const float* k = synthesis.values(Operand::kKey, token, row.layer, kv_head);
    oracle::VisibleKey key{.value = synthesis.values(Operand::kValue, token, row.layer, kv_head)};
    for (int32_t d = 0; d < model.head_dim; ++d) {
      const double term = double{q[d]} * double{k[d]} * double{model.scale()};
      key.score += term;
      key.magnitude += std::abs(term);
    }
    if (model.softcap > 0) {
      key.score = model.softcap * std::tanh(key.score / model.softcap);
      key.magnitude += model.softcap;
    }
    keys.push_back(key);
  }
  return keys;
}

}  // namespace

oracle::ExpectedRow reference_row(const ModelShape& model, const Synthesis& synthesis,
                                  const RequestContent& content, const CheckedRow& row,
                                  DType dtype) {
  const bool is_windowed = model.layer_kind(row.layer) == 1;
  const int64_t first = is_windowed ? std::max<int64_t>(0, row.position - model.window + 1) : 0;
  std::vector<uint64_t> tokens;  // the visible ones
  tokens.reserve(static_cast<size_t>(row.position + 1 - first));
  for (int64_t p = first; p <= row.position; ++p) tokens.push_back(content.token_key(p));
  const double sink = model.has_sinks ? double{synthesis.sinks()[static_cast<size_t>(row.q_head)]}
                                      : -std::numeric_limits<double>::infinity();
  return oracle::expect_row(visible_keys(model, synthesis, tokens, row), model.head_dim,
                            {dtype, dtype}, 1, sink);
}

std::string compare(const oracle::ExpectedRow& reference, const CheckedRow& row,
                    std::span<const float> out, float lse) {
  oracle::Comparison comparison;
  comparison.add(reference, {0, row.position, row.q_head}, out, &lse);
  return comparison.message();
}

}  // namespace pagoda::replay
