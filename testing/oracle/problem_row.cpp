// Values come from cpu::reference_row(), the oracle. Scores are recomputed here, because the
// limits need every probability and the magnitude of the terms of its score.
#include "testing/oracle/problem_row.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "backends/cpu/reference.hpp"
#include "core/element.hpp"

namespace pagoda::oracle {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// `count` elements as fp32: a pointer into the tensor where they are, a copy where they are not.
const float* load_row(const void* data, DType dtype, int64_t offset, int32_t count,
                      float* scratch) {
  if (dtype == DType::kF32) return static_cast<const float*>(data) + offset;
  for (int32_t d = 0; d < count; ++d) scratch[d] = core::load_element(data, dtype, offset + d);
  return scratch;
}

// K and V of the keys that any head of the group may see, read once for the group.
class Keys {
 public:
  Keys(const core::Problem& p, int32_t b, int32_t kv_head) : p_(p), b_(b), kv_head_(kv_head) {
    const auto keys = static_cast<size_t>(p.seqlen_kv(b));
    if (p.k.dtype != DType::kF32) k_.resize(keys * static_cast<size_t>(p.head_dim_qk));
    if (p.v.dtype != DType::kF32) v_.resize(keys * static_cast<size_t>(p.head_dim_vo));
  }
  const float* k(int32_t key) { return row(p_.k, key, p_.head_dim_qk, k_); }
  const float* v(int32_t key) { return row(p_.v, key, p_.head_dim_vo, v_); }

 private:
  const float* row(const core::KVView& view, int32_t key, int32_t dim, std::vector<float>& copy) {
    const size_t first = copy.empty() ? 0 : static_cast<size_t>(key) * static_cast<size_t>(dim);
    return load_row(view.data, view.dtype, p_.kv_offset(view, b_, key, kv_head_), dim,
                    copy.data() + first);
  }
  const core::Problem& p_;
  int32_t b_, kv_head_;
  std::vector<float> k_, v_;
};

std::vector<VisibleKey> visible_keys(const core::Problem& p, int32_t b, int64_t row, int32_t head,
                                     Keys& keys) {
  std::vector<float> q_copy(static_cast<size_t>(p.head_dim_qk));
  const float* const q =
      load_row(p.q.data, p.q.dtype, p.row_offset(p.q, b, row, head), p.head_dim_qk, q_copy.data());
  const auto scale = static_cast<double>(p.score_scale(b, head));
  const int64_t position = int64_t{p.q_position(b)} + row;
  const ScoreMod& mod = p.score_mod;
  std::vector<VisibleKey> visible;
  for (int32_t j = 0; j < p.seqlen_kv(b); ++j) {
    const cpu::MaskVerdict mask = cpu::reference_mask(p, b, row, head, j);
    if (!mask.keep) continue;
    const float* const k = keys.k(j);
    double product = 0, magnitude = 0;
    for (int32_t d = 0; d < p.head_dim_qk; ++d) {
      const double term = static_cast<double>(q[d]) * static_cast<double>(k[d]);
      product += term;
      magnitude += std::abs(term);
    }
    double s = product * scale;
    magnitude *= std::abs(scale);
    if (mod.softcap != 0) {
      const auto cap = static_cast<double>(mod.softcap);
      s = cap * std::tanh(s / cap);
      magnitude += cap;
    }
    double bias = mask.bias;
    if (!mod.alibi_slopes.empty()) {
      bias += static_cast<double>(core::elements(mod.alibi_slopes)[static_cast<size_t>(head)]) *
              static_cast<double>(j - position);
    }
    s += bias;
    magnitude += std::abs(bias);
    if (mod.functor != nullptr) {
      s = static_cast<double>(
          mod.functor(mod.context, static_cast<float>(s), b, head, position, j));
      magnitude += std::abs(s);
    }
    if (p.functor.has_score()) {
      const QueryRow query{b, p.seqlen_kv(b), static_cast<int32_t>(row),
                           static_cast<int32_t>(position), head};
      const double before = s;
      s = static_cast<double>(p.functor.score(query, j, static_cast<float>(s)));
      magnitude += std::abs(s - before);
    }
    if (s == -kInfinity) continue;
    visible.push_back({s, magnitude, keys.v(j)});
  }
  return visible;
}

}  // namespace

std::vector<ExpectedRow> expect_rows(const core::Problem& p, Precision precision, int32_t b,
                                     int64_t row) {
  const auto heads = static_cast<size_t>(p.num_q_heads);
  const auto dim = static_cast<size_t>(p.head_dim_vo);
  std::vector<double> out(heads * dim), lse(heads), row_max(heads);
  cpu::reference_row(p, b, row, out.data(), lse.data(), row_max.data());
  std::vector<ExpectedRow> rows;
  for (int32_t kv_head = 0; kv_head < p.num_kv_heads; ++kv_head) {
    Keys keys(p, b, kv_head);
    for (int32_t head = kv_head * p.group; head < (kv_head + 1) * p.group; ++head) {
      const bool is_padding = row >= p.seqlen_q(b);
      const double sink = p.sinks.empty() || is_padding
                              ? -kInfinity
                              : static_cast<double>(p.sinks[static_cast<size_t>(head)]);
      const std::vector<VisibleKey> visible =
          is_padding ? std::vector<VisibleKey>{} : visible_keys(p, b, row, head, keys);
      ExpectedRow& expected = rows.emplace_back(
          expect_row(visible, p.head_dim_vo, precision, p.o_scale(b, kv_head), sink));
      const auto h = static_cast<size_t>(head);
      std::copy_n(out.begin() + static_cast<ptrdiff_t>(h * dim), dim, expected.out.begin());
      expected.lse = lse[h];
      expected.row_max = row_max[h];
    }
  }
  return rows;
}

}  // namespace pagoda::oracle
