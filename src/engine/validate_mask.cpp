// Checks a mask: the expression is well-formed, and so are the arguments of every node.
#include <algorithm>
#include <array>

#include "core/int_math.hpp"
#include "engine/validate_steps.hpp"

namespace pagoda::engine {
namespace {

constexpr int64_t kMaxMaskReach = INT32_MAX;  // windows, chunks: q +- reach must not overflow

int64_t longest_keys(const core::Problem& p) {
  if (!p.has_host_lengths) return p.max_seqlen_kv_bound;
  int64_t longest = 0;
  for (int32_t b = 0; b < p.batch; ++b) longest = std::max<int64_t>(longest, p.seqlen_kv(b));
  return longest;
}

// An extent of 1 broadcasts over batch and heads.
Extent broadcast(std::string_view name, int64_t extent, int64_t actual) {
  return {name, actual == 1 ? 1 : extent};
}

Status check_additive(const std::string& field, const ConstTensor& t, const core::Problem& p) {
  if (t.rank != 3 && t.rank != 4) {
    return complain(field + ".tensor.rank", int64_t{t.rank},
                    "must be 3 [batch, seqlen_q, seqlen_kv] or 4 [batch, num_q_heads, seqlen_q, "
                    "seqlen_kv]");
  }
  const Extent batch = broadcast("batch", p.batch, t.shape[0]);
  const Extent heads = broadcast("num_q_heads", p.num_q_heads, t.shape[1]);
  const Extent rows{.name = "the longest seqlen_q", .least = p.max_seqlen_q};
  const Extent keys{.name = "the longest seqlen_kv", .least = longest_keys(p)};
  const std::string name = field + ".tensor";
  if (Status s = t.rank == 3 ? check_tensor(name, t, {batch, rows, keys})
                             : check_tensor(name, t, {batch, heads, rows, keys});
      !s) {
    return s;
  }
  return check_dtype(name, t, DType::kF32, "");
}

Status check_relative(const std::string& field, const ConstTensor& t, const core::Problem& p) {
  const std::string name = field + ".tensor";
  if (Status s = check_tensor(
          name, t, {{"num_q_heads", p.num_q_heads}, {.name = "2 * extent + 1", .least = 1}});
      !s) {
    return s;
  }
  if (t.shape[1] % 2 == 0) {
    return complain(name + ".shape[1]", t.shape[1], "must be odd: 2 * extent + 1");
  }
  return check_dtype(name, t, DType::kF32, "");
}

Status check_bits(const std::string& field, const MaskNode& node, const core::Problem& p) {
  if (Status s = check_address(field + ".words", node.words); !s) return s;
  const int64_t size = node.row_offsets.size();
  if (size != int64_t{p.batch} + 1) {
    return complain(field + ".row_offsets.size()", size,
                    "must be batch + 1 = " + std::to_string(int64_t{p.batch} + 1));
  }
  if (Status s = check_address(field + ".row_offsets", node.row_offsets); !s) return s;
  if (!p.has_host_lengths) return {};
  const std::span<const int64_t> offsets = core::host_elements(node.row_offsets);
  for (int32_t b = 0; b <= p.batch; ++b) {
    const int64_t offset = offsets[static_cast<size_t>(b)];
    if (offset < 0 || offset > node.words.size()) {
      return complain(element_name(field + ".row_offsets", b), offset,
                      "must be in [0, words.size() = " + std::to_string(node.words.size()) + "]");
    }
    if (b == 0) continue;
    const int64_t words = p.seqlen_q(b - 1) * core::ceil_div<int64_t>(p.seqlen_kv(b - 1), 32);
    const int64_t end = offsets[static_cast<size_t>(b - 1)] + words;
    if (offset < end) {
      return complain(
          element_name(field + ".row_offsets", b), offset,
          "must be at least " + std::to_string(end) + ": sequence " + std::to_string(b - 1) +
              " has seqlen_q * ceil(seqlen_kv / 32) = " + std::to_string(words) + " words");
    }
  }
  return {};
}

Status check_leaf(const std::string& field, const MaskNode& node, const core::Problem& p) {
  switch (node.kind) {
    case MaskKind::kNone:
    case MaskKind::kCausal: return {};
    case MaskKind::kWindow:
      if (node.left > kMaxMaskReach) {
        return complain(field + ".left", node.left, "must be at most 2147483647; -1 is open");
      }
      if (node.right > kMaxMaskReach) {
        return complain(field + ".right", node.right, "must be at most 2147483647; -1 is open");
      }
      return {};
    case MaskKind::kChunked:
      if (node.chunk >= 1 && node.chunk <= kMaxMaskReach) return {};
      return complain(field + ".chunk", node.chunk, "must be in [1, 2147483647]");
    case MaskKind::kPadding:
      return check_lengths(field + ".valid_lengths", node.valid_lengths, p.batch, 0, INT32_MAX,
                           "the largest length", contents_of(p));
    case MaskKind::kAdditive: return check_additive(field, node.tensor, p);
    case MaskKind::kRelativeBias: return check_relative(field, node.tensor, p);
    case MaskKind::kBits: return check_bits(field, node, p);
    case MaskKind::kFunctor:
      if (node.functor != nullptr) return {};
      return complain(field + ".functor", "null", "must not be null: the mask's kind is kFunctor");
    case MaskKind::kAnd:
    case MaskKind::kOr: break;
  }
  return complain(field + ".kind", static_cast<int64_t>(node.kind),
                  "must be one of MaskKind's values");
}

bool is_operator(const MaskNode& node) {
  return node.kind == MaskKind::kAnd || node.kind == MaskKind::kOr;
}

struct Subtree {
  int32_t root = 0;
  bool has_bias = false;
};

}  // namespace

Status check_mask(const Attention& a, core::Problem& p) {
  const std::vector<MaskNode>& nodes = a.mask.nodes();
  const auto count = static_cast<int64_t>(nodes.size());
  if (count < 1 || count > kMaxMaskNodes) {
    return complain("mask.nodes().size()", count,
                    "must be in [1, " + std::to_string(kMaxMaskNodes) + "]");
  }
  p.mask = nodes;
  if (count == 1 && (nodes[0].kind == MaskKind::kNone || nodes[0].kind == MaskKind::kCausal)) {
    return {};  // the common case: format no field name
  }
  std::array<Subtree, kMaxMaskNodes> stack{};  // finished operands, as in any postfix evaluation
  size_t depth = 0;
  for (int32_t i = 0; i < count; ++i) {
    const MaskNode& node = nodes[static_cast<size_t>(i)];
    const std::string field = element_name("mask.nodes", i);
    if (!is_operator(node)) {
      if (Status s = check_leaf(field, node, p); !s) return s;
      const bool has_bias =
          node.kind == MaskKind::kAdditive || node.kind == MaskKind::kRelativeBias;
      stack[depth++] = {i, has_bias};
      continue;
    }
    if (depth < 2 || node.rhs != stack[depth - 1].root || node.lhs != stack[depth - 2].root) {
      return complain(field + ".lhs", int64_t{node.lhs},
                      "operands must be the two expressions before the operator (postfix)");
    }
    const bool has_bias = stack[depth - 1].has_bias || stack[depth - 2].has_bias;
    if (node.kind == MaskKind::kOr && has_bias) {
      return complain(field, "an OR over a bias",
                      "additive and relative-bias masks can be combined with AND only");
    }
    stack[--depth - 1] = {i, has_bias};
  }
  if (depth != 1) {
    return complain("mask.nodes().size()", count, "the nodes must form one expression (postfix)");
  }
  return {};
}

}  // namespace pagoda::engine
