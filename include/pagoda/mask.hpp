// Mask: which keys a query sees, and which bias is added to their scores.
//
// Positions: query row i of a sequence has position q = cache_length + i, its keys have positions
// k = 0..seqlen_kv-1; by default cache_length = seqlen_kv - seqlen_q (bottom-right alignment). Left
// padding (Attention::leftpad_kv) is not among the keys. Keys at or past seqlen_kv are never
// visible. K and V of the others must be finite even where a mask excludes them, because 0 * NaN is
// NaN.
#pragma once

#include <cstdint>
#include <vector>

#include "pagoda/array_view.hpp"
#include "pagoda/tensor.hpp"

namespace pagoda {

// The largest number of nodes (masks and operators) of one expression.
inline constexpr int32_t kMaxMaskNodes = 16;

// Decides one (query, key) pair on the CPU. Must be pure and safe to call from several threads.
using MaskFunctor = bool (*)(void* context, int32_t sequence, int32_t q_head, int64_t q_position,
                             int64_t k_position);

enum class MaskKind : uint8_t {
  kNone,          // every key
  kCausal,        // k <= q
  kWindow,        // q - left <= k <= q + right; a negative bound is open
  kChunked,       // floor(k / chunk) == floor(q / chunk)
  kPadding,       // k < valid_lengths[sequence]
  kAdditive,      // every key; adds a materialised tensor to the score
  kRelativeBias,  // every key; adds table[head, k - q + extent] where |k - q| <= extent, else 0
  kBits,          // bit k of a row of words (trees for speculative decoding)
  kFunctor,       // the user's own predicate (CPU back end only)
  kAnd,           // keys that both operands keep; their biases add up
  kOr,            // keys that either operand keeps; operands must not have biases
};

// One node of a mask. Build it with the functions below, not by hand.
struct MaskNode {
  MaskKind kind = MaskKind::kNone;
  int64_t left = -1, right = -1;       // kWindow
  int64_t chunk = 0;                   // kChunked: keys, > 0
  ArrayView<int32_t> valid_lengths{};  // kPadding: [batch]
  ConstTensor tensor{};                // kAdditive, kRelativeBias
  ArrayView<uint32_t> words{};         // kBits: of all sequences
  ArrayView<int64_t> row_offsets{};    // kBits: [batch + 1], in words
  MaskFunctor functor = nullptr;       // kFunctor
  void* context = nullptr;             // kFunctor
  int32_t lhs = -1, rhs = -1;          // kAnd, kOr: operands' indices in nodes()
};

// An expression over the masks above, in postfix order: the last node is the root.
class Mask {
 public:
  Mask() : nodes_{MaskNode{}} {}  // no mask

  static Mask none() { return {}; }
  static Mask causal() { return Mask(MaskNode{.kind = MaskKind::kCausal}); }

  // Sliding window with inclusive bounds relative to the query; -1 leaves a side open.
  // A causal window of W keys is window(W - 1, 0).
  static Mask window(int64_t left, int64_t right) {
    return Mask(MaskNode{.kind = MaskKind::kWindow, .left = left, .right = right});
  }
  // Llama-4 style: a query sees only keys of its own chunk; `& causal()` gives the causal form.
  static Mask chunked(int64_t chunk) {
    return Mask(MaskNode{.kind = MaskKind::kChunked, .chunk = chunk});
  }
  // Keys k < valid_lengths[sequence]; valid_lengths: [batch], in tokens.
  static Mask padding(ArrayView<int32_t> valid_lengths) {
    return Mask(MaskNode{.kind = MaskKind::kPadding, .valid_lengths = valid_lengths});
  }
  // fp32 added to the scaled score, by query row: [batch, seqlen_q, seqlen_kv] or [batch,
  // num_q_heads, seqlen_q, seqlen_kv]; batch and heads broadcast from 1. It covers the longest
  // lengths; where lengths are in GPU memory, max_seqlen_q and max_seqlen_kv. -infinity excludes.
  static Mask additive(ConstTensor bias) {
    return Mask(MaskNode{.kind = MaskKind::kAdditive, .tensor = bias});
  }
  // fp32 [num_q_heads, 2 * extent + 1]: entry [h, k - q + extent] is added to the scaled score.
  static Mask relative_bias(ConstTensor table) {
    return Mask(MaskNode{.kind = MaskKind::kRelativeBias, .tensor = table});
  }
  // Query row i of sequence b keeps key k iff bit (k % 32) of
  // words[row_offsets[b] + i * ceil(seqlen_kv / 32) + k / 32] is set.
  static Mask bits(ArrayView<uint32_t> words, ArrayView<int64_t> row_offsets) {
    return Mask(MaskNode{.kind = MaskKind::kBits, .words = words, .row_offsets = row_offsets});
  }
  // `keep` decides each pair; back ends cpu and reference only. `context` must outlive the runs.
  static Mask functor(MaskFunctor keep, void* context = nullptr) {
    return Mask(MaskNode{.kind = MaskKind::kFunctor, .functor = keep, .context = context});
  }

  friend Mask operator&(const Mask& a, const Mask& b) { return combine(MaskKind::kAnd, a, b); }
  friend Mask operator|(const Mask& a, const Mask& b) { return combine(MaskKind::kOr, a, b); }

  [[nodiscard]] const std::vector<MaskNode>& nodes() const { return nodes_; }

 private:
  explicit Mask(const MaskNode& node) : nodes_{node} {}

  static Mask combine(MaskKind kind, const Mask& a, const Mask& b) {
    Mask m = a;
    const auto shift = static_cast<int32_t>(a.nodes_.size());
    for (MaskNode node : b.nodes_) {
      if (node.lhs >= 0) node.lhs += shift;
      if (node.rhs >= 0) node.rhs += shift;
      m.nodes_.push_back(node);
    }
    m.nodes_.push_back(
        MaskNode{.kind = kind, .lhs = shift - 1, .rhs = static_cast<int32_t>(m.nodes_.size()) - 1});
    return m;
  }

  std::vector<MaskNode> nodes_;
};

}  // namespace pagoda
