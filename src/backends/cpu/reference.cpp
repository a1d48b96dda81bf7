// Naive attention: for every row and head one pass over the keys for the scores, one for the
// values. This file is the definition: a kernel that disagrees with it is wrong.
#include "backends/cpu/reference.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/element.hpp"

namespace pagoda::cpu {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// One (query, key) pair, in every coordinate that a mask or a score mod depends on.
struct Pair {
  int32_t b;  // sequence
  int32_t q_head;
  int64_t row;  // query row of this call
  int64_t q;    // position of that row in the sequence
  int64_t k;    // position of the key
};

// One element of a tensor whose leading dimensions broadcast if their extent is 1.
double broadcast_element(const ConstTensor& t, std::initializer_list<int64_t> index) {
  int64_t offset = 0;
  size_t d = 0;
  for (const int64_t i : index) {
    offset += t.shape[d] == 1 ? 0 : i * t.strides[d];
    ++d;
  }
  return core::load_element(t.data, t.dtype, offset);
}

double additive_bias(const ConstTensor& t, const Pair& p) {
  if (t.rank == 3) return broadcast_element(t, {p.b, p.row, p.k});
  return broadcast_element(t, {p.b, p.q_head, p.row, p.k});
}

double relative_bias(const ConstTensor& table, const Pair& p) {
  const int64_t extent = (table.shape[1] - 1) / 2;
  if (std::abs(p.k - p.q) > extent) return 0;
  return broadcast_element(table, {p.q_head, p.k - p.q + extent});
}

int64_t chunk_of(int64_t position, int64_t chunk) {
  return static_cast<int64_t>(
      std::floor(static_cast<double>(position) / static_cast<double>(chunk)));
}

bool bit_is_set(const MaskNode& node, const core::Problem& problem, const Pair& p) {
  const int64_t words_per_row = (int64_t{problem.seqlen_kv(p.b)} + 31) / 32;
  const int64_t word =
      core::elements(node.row_offsets)[static_cast<size_t>(p.b)] + p.row * words_per_row + p.k / 32;
  return (core::elements(node.words)[static_cast<size_t>(word)] >> (p.k % 32) & 1U) != 0;
}

MaskVerdict evaluate(const core::Problem& problem, int32_t node_index, const Pair& p) {
  const MaskNode& node = problem.mask[static_cast<size_t>(node_index)];
  switch (node.kind) {
    case MaskKind::kNone: return {true, 0};
    case MaskKind::kCausal: return {p.k <= p.q, 0};
    case MaskKind::kWindow:
      return {
          (node.left < 0 || p.k >= p.q - node.left) && (node.right < 0 || p.k <= p.q + node.right),
          0};
    case MaskKind::kChunked: return {chunk_of(p.k, node.chunk) == chunk_of(p.q, node.chunk), 0};
    case MaskKind::kPadding:
      return {p.k < core::elements(node.valid_lengths)[static_cast<size_t>(p.b)], 0};
    case MaskKind::kAdditive: {
      const double bias = additive_bias(node.tensor, p);
      return {bias != -kInfinity, bias};
    }
    case MaskKind::kRelativeBias: {
      const double bias = relative_bias(node.tensor, p);
      return {bias != -kInfinity, bias};
    }
    case MaskKind::kBits: return {bit_is_set(node, problem, p), 0};
    case MaskKind::kFunctor: return {node.functor(node.context, p.b, p.q_head, p.q, p.k), 0};
    case MaskKind::kAnd: {
      // The right operand is not evaluated for a pair that the left one excludes.
      const MaskVerdict lhs = evaluate(problem, node.lhs, p);
      if (!lhs.keep) return {false, 0};
      const MaskVerdict rhs = evaluate(problem, node.rhs, p);
      return {rhs.keep, lhs.bias + rhs.bias};
    }
    case MaskKind::kOr:
      return {evaluate(problem, node.lhs, p).keep || evaluate(problem, node.rhs, p).keep, 0};
  }
  return {false, 0};
}

QueryRow query_row(const core::Problem& problem, const Pair& p) {
  return {p.b, problem.seqlen_kv(p.b), static_cast<int32_t>(p.row), static_cast<int32_t>(p.q),
          p.q_head};
}

// By the mask of the call and its functor.
MaskVerdict verdict(const core::Problem& problem, const Pair& p) {
  const MaskVerdict mask = evaluate(problem, static_cast<int32_t>(problem.mask.size()) - 1, p);
  if (!mask.keep || !problem.functor.has_mask()) return mask;
  return {problem.functor.keep(query_row(problem, p), static_cast<int32_t>(p.k)), mask.bias};
}

double dot_product(const core::Problem& problem, const Pair& p) {
  const int32_t kv_head = p.q_head / problem.group;
  const int64_t q = problem.row_offset(problem.q, p.b, p.row, p.q_head);
  const int64_t k = problem.kv_offset(problem.k, p.b, p.k, kv_head);
  double sum = 0;
  for (int32_t d = 0; d < problem.head_dim_qk; ++d) {
    sum += static_cast<double>(core::load_element(problem.q.data, problem.q.dtype, q + d)) *
           static_cast<double>(core::load_element(problem.k.data, problem.k.dtype, k + d));
  }
  return sum * static_cast<double>(problem.q_scales.of(p.b, p.q_head)) *
         static_cast<double>(problem.k_scales.of(p.b, kv_head));
}

// The score of one pair, in the order that score_mod.hpp documents; -infinity if it is masked. The
// key of a masked pair is not read: its slot may hold anything.
double score(const core::Problem& problem, const Pair& p) {
  const MaskVerdict mask = verdict(problem, p);
  if (!mask.keep) return -kInfinity;
  const ScoreMod& mod = problem.score_mod;
  double s = static_cast<double>(problem.softmax_scale) * dot_product(problem, p);
  if (mod.softcap != 0) {
    const auto cap = static_cast<double>(mod.softcap);
    s = cap * std::tanh(s / cap);
  }
  if (!mod.alibi_slopes.empty()) {
    s += static_cast<double>(core::elements(mod.alibi_slopes)[static_cast<size_t>(p.q_head)]) *
         static_cast<double>(p.k - p.q);
  }
  s += mask.bias;
  if (mod.functor != nullptr) {
    s = static_cast<double>(
        mod.functor(mod.context, static_cast<float>(s), p.b, p.q_head, p.q, p.k));
  }
  if (problem.functor.has_score()) {
    s = static_cast<double>(problem.functor.score(query_row(problem, p), static_cast<int32_t>(p.k),
                                                  static_cast<float>(s)));
  }
  return s;
}

// One row of one head: out [head_dim_vo].
void attention_row(const core::Problem& problem, int32_t b, int64_t row, int32_t q_head,
                   double* out, double& lse, double& row_max) {
  const int32_t seqlen_kv = problem.seqlen_kv(b);
  const int32_t kv_head = q_head / problem.group;
  const double sink = problem.sinks.empty()
                          ? -kInfinity
                          : static_cast<double>(problem.sinks[static_cast<size_t>(q_head)]);
  std::fill_n(out, problem.head_dim_vo, 0.0);

  std::vector<double> scores(static_cast<size_t>(seqlen_kv));
  row_max = sink;
  for (int32_t key = 0; key < seqlen_kv; ++key) {
    const Pair pair{b, q_head, row, problem.q_position(b) + row, key};
    const double s = score(problem, pair);
    scores[static_cast<size_t>(key)] = s;
    if (s > row_max || std::isnan(s)) row_max = s;
  }
  if (row_max == -kInfinity) {  // no key, no sink
    lse = -kInfinity;
    return;
  }

  double denominator = std::exp(sink - row_max);
  for (int32_t key = 0; key < seqlen_kv; ++key) {
    const double s = scores[static_cast<size_t>(key)];
    if (s == -kInfinity) continue;  // not 0 * V: V may be NaN there
    const double weight = std::exp(s - row_max);
    denominator += weight;
    const int64_t v = problem.kv_offset(problem.v, b, key, kv_head);
    for (int32_t d = 0; d < problem.head_dim_vo; ++d) {
      out[d] +=
          weight * static_cast<double>(core::load_element(problem.v.data, problem.v.dtype, v + d));
    }
  }
  const double scale = static_cast<double>(problem.o_scale(b, kv_head)) / denominator;
  for (int32_t d = 0; d < problem.head_dim_vo; ++d) out[d] *= scale;
  lse = row_max + std::log(denominator);
}

void store_if_present(const core::RowView& view, const core::Problem& problem, int32_t b,
                      int64_t row, int32_t q_head, int32_t d, double value) {
  if (view.data == nullptr) return;
  core::store_element(view.data, view.dtype, problem.row_offset(view, b, row, q_head) + d,
                      static_cast<float>(value));
}

}  // namespace

void reference_row(const core::Problem& problem, int32_t b, int64_t row, double* out, double* lse,
                   double* row_max) {
  std::vector<double> head_out(static_cast<size_t>(problem.head_dim_vo), 0.0);
  const bool is_padding = row >= problem.seqlen_q(b);
  for (int32_t h = 0; h < problem.num_q_heads; ++h) {
    double head_lse = -kInfinity;
    double head_max = -kInfinity;
    if (!is_padding) attention_row(problem, b, row, h, head_out.data(), head_lse, head_max);
    if (out != nullptr) std::copy(head_out.begin(), head_out.end(), out + h * problem.head_dim_vo);
    if (lse != nullptr) lse[h] = head_lse;
    if (row_max != nullptr) row_max[h] = head_max;
  }
}

MaskVerdict reference_mask(const core::Problem& problem, int32_t b, int64_t row, int32_t q_head,
                           int64_t key) {
  return verdict(problem, {b, q_head, row, problem.q_position(b) + row, key});
}

void reference_attention(const core::Problem& problem) {
  const int32_t heads = problem.num_q_heads;
  const int32_t dim = problem.head_dim_vo;
  std::vector<double> out(static_cast<size_t>(heads) * static_cast<size_t>(dim));
  std::vector<double> lse(static_cast<size_t>(heads));
  std::vector<double> row_max(static_cast<size_t>(heads));
  for (int32_t b = 0; b < problem.batch; ++b) {
    // Padding rows are written as rows without keys.
    const int32_t rows = problem.num_rows(b);
    for (int32_t row = 0; row < rows; ++row) {
      reference_row(problem, b, row, out.data(), lse.data(), row_max.data());
      for (int32_t h = 0; h < heads; ++h) {
        for (int32_t d = 0; d < dim; ++d) {
          store_if_present(
              problem.out, problem, b, row, h, d,
              out[static_cast<size_t>(h) * static_cast<size_t>(dim) + static_cast<size_t>(d)]);
        }
        store_if_present(problem.lse, problem, b, row, h, 0,
                         lse[static_cast<size_t>(h)] * static_cast<double>(problem.lse_factor));
        store_if_present(problem.row_max, problem, b, row, h, 0, row_max[static_cast<size_t>(h)]);
      }
    }
  }
}

}  // namespace pagoda::cpu
