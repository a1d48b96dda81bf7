// Sorts the operands of the AND at the root into interval, biases and program.
#include "mask/make_expression_mask.hpp"

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <vector>

#include "mask/expression.hpp"

namespace pagoda::mask {
namespace {

constexpr int32_t kMaxLeaves = ExpressionMask::kMaxLeaves;
// n leaves have n - 1 binary operators: every expression of the API fits.
static_assert(kMaxMaskNodes <= 2 * kMaxLeaves);
// With the deeper operand first, stack depth d needs 2^(d - 1) leaves.
static_assert(kMaxLeaves < 1 << ExpressionMask::kMaxDepth);
static_assert(2 * (2 * kMaxLeaves - 1) <= 32, "the program is one word, two bits a step");

bool is_operator(const MaskNode& node) {
  return node.kind == MaskKind::kAnd || node.kind == MaskKind::kOr;
}
bool is_bias(const MaskNode& node) {
  return node.kind == MaskKind::kAdditive || node.kind == MaskKind::kRelativeBias;
}

Bias make_bias(const MaskNode& node) {
  const ConstTensor& tensor = node.tensor;
  const auto stride = [&](size_t axis) {
    return tensor.shape[axis] > 1 ? tensor.strides[axis] : 0;
  };
  Bias bias;
  bias.data = static_cast<const float*>(tensor.data);
  if (node.kind == MaskKind::kRelativeBias) {
    bias.head_stride = stride(0);
    bias.extent = static_cast<int32_t>((tensor.shape[1] - 1) / 2);
    return bias;
  }
  const bool has_heads = tensor.rank == 4;
  bias.sequence_stride = stride(0);
  bias.head_stride = has_heads ? stride(1) : 0;
  bias.row_stride = stride(has_heads ? 2 : 1);
  return bias;
}

class Builder {
 public:
  explicit Builder(std::span<const MaskNode> nodes) : nodes_(nodes) {}

  ExpressionMask build() {
    collect(static_cast<int32_t>(nodes_.size()) - 1);
    std::stable_sort(operands_.begin(), operands_.end(),
                     [this](int32_t a, int32_t b) { return depth(a) > depth(b); });
    for (size_t i = 0; i < operands_.size(); ++i) {
      emit(operands_[i]);
      if (i > 0) step(ExpressionMask::kAnd);
    }
    return mask_;
  }

 private:
  [[nodiscard]] const MaskNode& node(int32_t index) const {
    return nodes_[static_cast<size_t>(index)];
  }

  void collect(int32_t index) {
    const MaskNode& n = node(index);
    if (n.kind == MaskKind::kAnd) {
      collect(n.lhs);
      collect(n.rhs);
    } else if (is_bias(n)) {
      mask_.biases[mask_.num_biases++] = make_bias(n);
    } else if (n.kind == MaskKind::kBits || n.kind == MaskKind::kOr) {
      operands_.push_back(index);
      mask_.is_interval = false;
    } else if (!narrow(mask_.interval, n)) {
      operands_.push_back(index);
    }
  }
  // Stack depth of evaluating the expression at `index`, deeper operand first.
  [[nodiscard]] int32_t depth(int32_t index) const {
    const MaskNode& n = node(index);
    if (!is_operator(n)) return 1;
    const int32_t lhs = depth(n.lhs), rhs = depth(n.rhs);
    return lhs == rhs ? lhs + 1 : std::max(lhs, rhs);
  }
  void emit(int32_t index) {
    const MaskNode& n = node(index);
    if (!is_operator(n)) return emit_leaf(n);
    const bool is_left_first = depth(n.lhs) >= depth(n.rhs);
    emit(is_left_first ? n.lhs : n.rhs);
    emit(is_left_first ? n.rhs : n.lhs);
    step(n.kind == MaskKind::kAnd ? ExpressionMask::kAnd : ExpressionMask::kOr);
  }
  void emit_leaf(const MaskNode& n) {
    assert(!is_bias(n) && "the engine rejects a bias below an OR");
    ExpressionLeaf& leaf = mask_.leaves[num_leaves_++];
    if (n.kind == MaskKind::kBits) {
      leaf.words = n.words.data();
      leaf.row_offsets = n.row_offsets.data();
    } else {
      leaf.interval = *interval_mask({&n, 1});
    }
    step(ExpressionMask::kLeaf);
  }
  void step(uint32_t what) { mask_.program |= what << (2 * num_steps_++); }

  std::span<const MaskNode> nodes_;
  std::vector<int32_t> operands_;  // of the AND at the root, without intervals and biases
  int32_t num_leaves_ = 0;
  uint32_t num_steps_ = 0;
  ExpressionMask mask_;
};

}  // namespace

std::string unsupported_mask_reason(std::span<const MaskNode> nodes) {
  const auto leaves = std::count_if(nodes.begin(), nodes.end(),
                                    [](const MaskNode& node) { return !is_operator(node); });
  if (leaves > kMaxLeaves) {
    return "the mask has " + std::to_string(leaves) + " leaves, at most " +
           std::to_string(kMaxLeaves) + " run on a GPU";
  }
  for (const MaskNode& node : nodes) {
    if (node.kind == MaskKind::kFunctor) return "a functor mask runs on the CPU only";
    if (node.kind == MaskKind::kRelativeBias && (node.tensor.shape[1] - 1) / 2 >= INT32_MAX) {
      return "a relative bias has distances of 2147483647 and more";
    }
  }
  return {};
}

ExpressionMask make_expression_mask(std::span<const MaskNode> nodes) {
  assert(unsupported_mask_reason(nodes).empty());
  return Builder(nodes).build();
}

}  // namespace pagoda::mask
