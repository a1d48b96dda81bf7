// Rebuilds a mask from its nodes with the public functions.
#include "testing/mirror/arrays.hpp"

namespace pagoda::mirror {
namespace {

Mask leaf(const MaskNode& node) {
  switch (node.kind) {
    case MaskKind::kCausal: return Mask::causal();
    case MaskKind::kWindow: return Mask::window(node.left, node.right);
    case MaskKind::kChunked: return Mask::chunked(node.chunk);
    case MaskKind::kPadding: return Mask::padding(node.valid_lengths);
    case MaskKind::kAdditive: return Mask::additive(node.tensor);
    case MaskKind::kRelativeBias: return Mask::relative_bias(node.tensor);
    case MaskKind::kBits: return Mask::bits(node.words, node.row_offsets);
    case MaskKind::kFunctor: return Mask::functor(node.functor, node.context);
    case MaskKind::kNone:
    case MaskKind::kAnd:
    case MaskKind::kOr: break;
  }
  return Mask::none();
}

Mask subtree(std::span<const MaskNode> nodes, size_t root) {
  const MaskNode& node = nodes[root];
  if (node.kind != MaskKind::kAnd && node.kind != MaskKind::kOr) return leaf(node);
  const Mask lhs = subtree(nodes, static_cast<size_t>(node.lhs));
  const Mask rhs = subtree(nodes, static_cast<size_t>(node.rhs));
  return node.kind == MaskKind::kAnd ? lhs & rhs : lhs | rhs;
}

}  // namespace

Mask mask_of(std::span<const MaskNode> nodes) { return subtree(nodes, nodes.size() - 1); }

}  // namespace pagoda::mirror
