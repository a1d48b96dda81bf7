// Keep words of the mask expression, then biases; see the header for the contract.
#include "mask/row_mask.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <span>

#include "mask/expression.hpp"
#include "mask/interval.hpp"

namespace pagoda::mask {
namespace {

// Bit i of the words: whether key first_key + i is kept.
using KeepWords = std::array<uint32_t, kMaxRun / 32>;

struct Run {
  const core::Problem* problem;
  RowPosition position;
  int32_t first_key;
  int32_t n;
  int32_t seqlen_kv;
};

void keep_interval(const Run& run, Interval keys, KeepWords& words) {
  for (int32_t w = 0; w * 32 < run.n; ++w) {
    words[static_cast<size_t>(w)] = keys.keep32(run.first_key + w * 32);
  }
}

void keep_bits(const Run& run, const MaskNode& node, KeepWords& words) {
  const int32_t words_per_row = run.seqlen_kv / 32 + (run.seqlen_kv % 32 != 0 ? 1 : 0);
  const auto sequence = static_cast<size_t>(run.position.sequence);
  const uint32_t* row = node.words.data() + core::elements(node.row_offsets)[sequence] +
                        int64_t{run.position.row} * words_per_row;
  const auto word = [&](int32_t i) { return i < words_per_row ? uint64_t{row[i]} : 0; };
  for (int32_t w = 0; w * 32 < run.n; ++w) {
    const int32_t key = run.first_key + w * 32;
    const uint64_t pair = word(key / 32) | word(key / 32 + 1) << 32;
    const uint32_t inside = low_ones(run.seqlen_kv - key);
    words[static_cast<size_t>(w)] = static_cast<uint32_t>(pair >> (key % 32)) & inside;
  }
}

void keep_functor(const Run& run, const MaskNode& node, KeepWords& words) {
  words.fill(0);
  for (int32_t i = 0; i < run.n; ++i) {
    if (node.functor(node.context, run.position.sequence, run.position.q_head,
                     run.position.q_position, run.first_key + i)) {
      words[static_cast<size_t>(i / 32)] |= 1U << static_cast<uint32_t>(i % 32);
    }
  }
}

// The functor of the call sees the pairs that the mask keeps.
void apply_functor(const Run& run, KeepWords& words, float* scores) {
  const core::Functor& functor = run.problem->functor;
  const QueryRow row{run.position.sequence, run.seqlen_kv, run.position.row,
                     run.position.q_position, run.position.q_head};
  for (int32_t i = 0; i < run.n; ++i) {
    uint32_t& word = words[static_cast<size_t>(i / 32)];
    const uint32_t bit = 1U << static_cast<uint32_t>(i % 32);
    if ((word & bit) == 0 || scores[i] == -std::numeric_limits<float>::infinity()) continue;
    if (functor.keep(row, run.first_key + i)) {
      scores[i] = functor.score(row, run.first_key + i, scores[i]);
    } else {
      word &= ~bit;
    }
  }
}

void keep(const Run& run, int32_t root, KeepWords& words) {
  const std::span<const MaskNode> nodes = run.problem->mask;
  const MaskNode& node = nodes[static_cast<size_t>(root)];
  switch (node.kind) {
    case MaskKind::kBits: keep_bits(run, node, words); return;
    case MaskKind::kFunctor: keep_functor(run, node, words); return;
    case MaskKind::kAnd:
    case MaskKind::kOr: {
      KeepWords right{};
      keep(run, node.lhs, words);
      keep(run, node.rhs, right);
      for (size_t w = 0; w < words.size(); ++w) {
        words[w] = node.kind == MaskKind::kAnd ? words[w] & right[w] : words[w] | right[w];
      }
      return;
    }
    default:
      keep_interval(
          run, leaf_interval(node, run.position.sequence, run.position.q_position, run.seqlen_kv),
          words);
  }
}

void add_bias(const Run& run, const MaskNode& node, float* scores) {
  const auto* data = static_cast<const float*>(node.tensor.data);
  const auto& shape = node.tensor.shape;
  const auto& strides = node.tensor.strides;
  if (node.kind == MaskKind::kAdditive) {
    const bool has_heads = node.tensor.rank == 4;
    const size_t row_axis = has_heads ? 2 : 1;
    int64_t offset = run.position.row * strides[row_axis] + run.first_key;
    if (shape[0] > 1) offset += run.position.sequence * strides[0];
    if (has_heads && shape[1] > 1) offset += run.position.q_head * strides[1];
    for (int32_t i = 0; i < run.n; ++i) scores[i] += data[offset + i];
    return;
  }
  const int64_t extent = (shape[1] - 1) / 2;
  const float* row = data + run.position.q_head * strides[0];
  const int64_t first =
      int64_t{run.first_key} - run.position.q_position + extent;  // index of scores[0]
  const int64_t begin = std::max<int64_t>(0, -first);
  const int64_t end = std::min<int64_t>(run.n, shape[1] - first);
  for (int64_t i = begin; i < end; ++i) scores[i] += row[first + i];
}

}  // namespace

void apply(const core::Problem& problem, const RowPosition& position, int32_t first_key, int32_t n,
           float* scores) {
  const Run run{&problem, position, first_key, n, problem.seqlen_kv(position.sequence)};
  // Only keys of the sequence: bias tensors end there.
  const int32_t valid = std::clamp(run.seqlen_kv - first_key, 0, n);
  Run inside = run;
  inside.n = valid;
  for (const MaskNode& node : problem.mask) {
    if (node.kind == MaskKind::kAdditive || node.kind == MaskKind::kRelativeBias) {
      add_bias(inside, node, scores);
    }
  }
  if (problem.score_mod.functor != nullptr) {
    for (int32_t i = 0; i < valid; ++i) {
      // A bias of -infinity masks the pair: a functor must not unmask it.
      if (scores[i] == -std::numeric_limits<float>::infinity()) continue;
      scores[i] = problem.score_mod.functor(problem.score_mod.context, scores[i], position.sequence,
                                            position.q_head, position.q_position, first_key + i);
    }
  }
  KeepWords words{};
  keep(run, static_cast<int32_t>(problem.mask.size()) - 1, words);
  if (problem.functor.type != nullptr) apply_functor(inside, words, scores);
  for (int32_t i = 0; i < n; ++i) {
    const bool is_kept =
        ((words[static_cast<size_t>(i / 32)] >> static_cast<uint32_t>(i % 32)) & 1U) != 0;
    if (!is_kept) scores[i] = -std::numeric_limits<float>::infinity();
  }
}

}  // namespace pagoda::mask
