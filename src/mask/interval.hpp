// The keys a query may see as one interval [lo, hi). None, causal, window, chunked, padding and
// their intersections are intervals; for every other mask this is a hull: nothing outside it is
// visible. Both bounds grow with the query's position, so a tile of queries needs only its ends.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "core/int_math.hpp"
#include "pagoda/mask.hpp"

namespace pagoda::mask {

struct Interval {
  int64_t lo = 0;
  int64_t hi = 0;  // empty when hi <= lo

  [[nodiscard]] bool empty() const { return hi <= lo; }
};

// Does the interval say all there is to say about this mask?
[[nodiscard]] inline bool is_interval(std::span<const MaskNode> nodes) {
  return std::all_of(nodes.begin(), nodes.end(), [](const MaskNode& node) {
    return node.kind <= MaskKind::kPadding || node.kind == MaskKind::kAnd;
  });
}

// Farther than any position: bounds beyond it are the same as open ones, and must not overflow.
inline constexpr int64_t kFar = int64_t{1} << 40;

// One leaf, clipped to [0, seqlen_kv].
[[nodiscard]] inline Interval leaf_interval(const MaskNode& node, int32_t sequence,
                                            int64_t q_position, int64_t seqlen_kv) {
  Interval keys{0, seqlen_kv};
  switch (node.kind) {
    case MaskKind::kCausal: keys.hi = q_position + 1; break;
    case MaskKind::kWindow:
      if (node.left >= 0) keys.lo = q_position - std::min<int64_t>(node.left, kFar);
      if (node.right >= 0) keys.hi = q_position + std::min<int64_t>(node.right, kFar) + 1;
      break;
    case MaskKind::kChunked: {
      const int64_t chunk = std::min<int64_t>(node.chunk, kFar);
      keys.lo = core::floor_div(q_position, chunk) * chunk;
      keys.hi = keys.lo + chunk;
      break;
    }
    case MaskKind::kPadding: keys.hi = node.valid_lengths[static_cast<size_t>(sequence)]; break;
    default: break;
  }
  return {std::clamp<int64_t>(keys.lo, 0, seqlen_kv), std::clamp<int64_t>(keys.hi, 0, seqlen_kv)};
}

[[nodiscard]] inline Interval visible_interval(std::span<const MaskNode> nodes, int32_t root,
                                               int32_t sequence, int64_t q_position,
                                               int64_t seqlen_kv) {
  const MaskNode& node = nodes[static_cast<size_t>(root)];
  if (node.kind != MaskKind::kAnd && node.kind != MaskKind::kOr) {
    return leaf_interval(node, sequence, q_position, seqlen_kv);
  }
  const Interval a = visible_interval(nodes, node.lhs, sequence, q_position, seqlen_kv);
  const Interval b = visible_interval(nodes, node.rhs, sequence, q_position, seqlen_kv);
  if (node.kind == MaskKind::kAnd) return {std::max(a.lo, b.lo), std::min(a.hi, b.hi)};
  // Emptiness is ignored on purpose: the hull stays monotonic in the position.
  return {std::min(a.lo, b.lo), std::max(a.hi, b.hi)};
}

[[nodiscard]] inline Interval visible_interval(std::span<const MaskNode> nodes, int32_t sequence,
                                               int64_t q_position, int64_t seqlen_kv) {
  return visible_interval(nodes, static_cast<int32_t>(nodes.size()) - 1, sequence, q_position,
                          seqlen_kv);
}

}  // namespace pagoda::mask
