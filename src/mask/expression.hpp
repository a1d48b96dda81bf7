// Intervals of the API's mask expressions (host only): the bounding interval of one row for any
// expression, and one IntervalMask for all rows where the expression is an intersection of
// intervals.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>

#include "core/array_elements.hpp"
#include "mask/interval.hpp"
#include "mask/interval_mask.hpp"
#include "pagoda/mask.hpp"

namespace pagoda::mask {

// Whether visible_interval() is exact: all leaves are intervals and no operator is OR.
[[nodiscard]] inline bool is_interval(std::span<const MaskNode> nodes) {
  return std::all_of(nodes.begin(), nodes.end(), [](const MaskNode& node) {
    return node.kind <= MaskKind::kPadding || node.kind == MaskKind::kAnd;
  });
}

// The rule of one leaf; unbounded for padding and for leaves that are no interval.
[[nodiscard]] inline IntervalRule leaf_rule(const MaskNode& node) {
  const auto reach = [](int64_t bound) {
    return bound < 0 ? IntervalRule::kOpen
                     : static_cast<int32_t>(std::min<int64_t>(bound, IntervalRule::kOpen));
  };
  switch (node.kind) {
    case MaskKind::kCausal: return {.right = 0};
    case MaskKind::kWindow: return {.left = reach(node.left), .right = reach(node.right)};
    case MaskKind::kChunked: return {.chunk = reach(node.chunk)};
    default: return {};
  }
}

// One leaf, clipped to [0, seqlen_kv].
[[nodiscard]] inline Interval leaf_interval(const MaskNode& node, int32_t sequence,
                                            int32_t position, int32_t seqlen_kv) {
  int32_t num_keys = seqlen_kv;
  if (node.kind == MaskKind::kPadding) {
    num_keys =
        std::min(num_keys, core::elements(node.valid_lengths)[static_cast<size_t>(sequence)]);
  }
  return leaf_rule(node).visible(position, num_keys);
}

// The bounding interval of the keys that the query at `position` sees; exact if is_interval().
[[nodiscard]] inline Interval visible_interval(std::span<const MaskNode> nodes, int32_t root,
                                               int32_t sequence, int32_t position,
                                               int32_t seqlen_kv) {
  const MaskNode& node = nodes[static_cast<size_t>(root)];
  if (node.kind != MaskKind::kAnd && node.kind != MaskKind::kOr) {
    return leaf_interval(node, sequence, position, seqlen_kv);
  }
  const Interval a = visible_interval(nodes, node.lhs, sequence, position, seqlen_kv);
  const Interval b = visible_interval(nodes, node.rhs, sequence, position, seqlen_kv);
  return node.kind == MaskKind::kAnd ? a & b : a | b;
}

[[nodiscard]] inline Interval visible_interval(std::span<const MaskNode> nodes, int32_t sequence,
                                               int32_t position, int32_t seqlen_kv) {
  return visible_interval(nodes, static_cast<int32_t>(nodes.size()) - 1, sequence, position,
                          seqlen_kv);
}

// Intersects `mask` with an interval leaf. Returns false and changes nothing if the intersection is
// not one rule: chunk sizes of which neither divides the other, two different paddings. Leaves that
// are no interval change nothing.
[[nodiscard]] inline bool narrow(IntervalMask& mask, const MaskNode& leaf) {
  const bool is_padding = leaf.kind == MaskKind::kPadding;
  const int32_t* const valid = arch::RawGlobal::of(mask.valid_lengths);
  const int32_t* const lengths = is_padding ? leaf.valid_lengths.data() : valid;
  if (valid != nullptr && valid != lengths) return false;
  const IntervalRule rule = leaf_rule(leaf);
  const int32_t small = std::min(mask.rule.chunk, rule.chunk);
  const int32_t large = std::max(mask.rule.chunk, rule.chunk);
  if (small != 0 && large % small != 0) return false;
  mask.valid_lengths = lengths;
  mask.rule.left = std::min(mask.rule.left, rule.left);
  mask.rule.right = std::min(mask.rule.right, rule.right);
  mask.rule.chunk = small != 0 ? small : large;
  return true;
}

// The intersection of all interval leaves as one mask: exact if is_interval(), else a bound,
// because bits, biases and functors beside them are left out. nullopt for unions and where narrow()
// fails.
[[nodiscard]] inline std::optional<IntervalMask> interval_mask(std::span<const MaskNode> nodes) {
  IntervalMask mask;
  for (const MaskNode& node : nodes) {
    if (node.kind == MaskKind::kOr || !narrow(mask, node)) return std::nullopt;
  }
  return mask;
}

}  // namespace pagoda::mask
