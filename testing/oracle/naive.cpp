// Same-precision naive attention. Masks come from cpu::reference_mask().
#include "testing/oracle/naive.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "backends/cpu/reference.hpp"
#include "core/element.hpp"

namespace pagoda::oracle {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// 8-bit probabilities are scaled by 2^6, so that small ones do not all become subnormal.
float probability(DType dtype, float weight) {
  const float lift = dtype == DType::kF8E4M3 ? 64.0F : 1.0F;
  return core::rounded_to(dtype, weight * lift) / lift;
}

float naive_score(const core::Problem& p, int32_t b, int32_t row, int32_t head, int32_t key) {
  const cpu::MaskVerdict mask = cpu::reference_mask(p, b, row, head, key);
  if (!mask.keep) return -kInfinity;
  const int32_t kv_head = head / p.group;
  const float* q = static_cast<const float*>(p.q.data) + p.row_offset(p.q, b, row, head);
  const float* k = static_cast<const float*>(p.k.data) + p.kv_offset(p.k, b, key, kv_head);
  float s = 0;
  for (int32_t d = 0; d < p.head_dim_qk; ++d) s += q[d] * k[d];
  s *= p.score_scale(b, head);
  const int64_t q_position = int64_t{p.q_position(b)} + row;
  const ScoreMod& mod = p.score_mod;
  if (mod.softcap != 0) s = mod.softcap * std::tanh(s / mod.softcap);
  if (!mod.alibi_slopes.empty()) {
    s += core::elements(mod.alibi_slopes)[static_cast<size_t>(head)] *
         static_cast<float>(key - q_position);
  }
  s += static_cast<float>(mask.bias);
  if (mod.functor != nullptr) s = mod.functor(mod.context, s, b, head, q_position, key);
  return s;
}

}  // namespace

void naive_row(const core::Problem& p, Precision precision, int32_t b, int32_t row, float* out,
               float* lse, float* row_max) {
  std::fill_n(out, p.num_q_heads * p.head_dim_vo, 0.0F);
  std::fill_n(lse, p.num_q_heads, -kInfinity);
  std::fill_n(row_max, p.num_q_heads, -kInfinity);
  if (row >= p.seqlen_q(b)) return;
  const int32_t keys = p.seqlen_kv(b);
  std::vector<float> scores(static_cast<size_t>(keys));
  for (int32_t h = 0; h < p.num_q_heads; ++h) {
    float largest = -kInfinity;
    for (int32_t j = 0; j < keys; ++j) {
      scores[static_cast<size_t>(j)] = naive_score(p, b, row, h, j);
      largest = std::max(largest, scores[static_cast<size_t>(j)]);
    }
    const float sink = p.sinks.empty() ? -kInfinity : p.sinks[static_cast<size_t>(h)];
    row_max[h] = std::max(largest, sink);
    lse[h] = row_max[h];
    if (row_max[h] == -kInfinity) continue;
    // Probabilities relative to the largest score, sink included, are at most 1.
    float sum = std::exp(sink - row_max[h]);
    float* o = out + h * p.head_dim_vo;
    for (int32_t j = 0; j < keys; ++j) {
      if (scores[static_cast<size_t>(j)] == -kInfinity) continue;
      const float weight = std::exp(scores[static_cast<size_t>(j)] - row_max[h]);
      sum += weight;
      const float rounded = probability(precision.p, weight);
      const float* v = static_cast<const float*>(p.v.data) + p.kv_offset(p.v, b, j, h / p.group);
      for (int32_t d = 0; d < p.head_dim_vo; ++d) o[d] += rounded * v[d];
    }
    const float scale = p.o_scale(b, h / p.group) / sum;
    for (int32_t d = 0; d < p.head_dim_vo; ++d)
      o[d] = core::rounded_to(precision.out, o[d] * scale);
    lse[h] += std::log(sum);
  }
}

}  // namespace pagoda::oracle
