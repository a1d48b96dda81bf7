// Evaluates the postfix expression with Mask's own operators, so that a mask from C can't have
// operands that a mask from C++ can't have.
#include "c_api/masks.hpp"

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "c_api/structs.hpp"
#include "c_api/tensors.hpp"
#include "engine/check.hpp"

namespace pagoda::c_api {
namespace {

using engine::complain;

// `context` of a Mask::functor is the caller's; its type is the caller's function type.
static_assert(std::is_same_v<pagoda_mask_functor, MaskFunctor>);

Status to_leaf(const std::string& field, const pagoda_mask_node& node, Mask& to) {
  switch (node.kind) {
    case PAGODA_MASK_NONE: to = Mask::none(); return {};
    case PAGODA_MASK_CAUSAL: to = Mask::causal(); return {};
    case PAGODA_MASK_WINDOW: to = Mask::window(node.left, node.right); return {};
    case PAGODA_MASK_CHUNKED: to = Mask::chunked(node.chunk); return {};
    case PAGODA_MASK_PADDING: {
      ArrayView<int32_t> lengths;
      if (Status s = to_array(field + ".valid_lengths", node.valid_lengths, lengths, 0); !s) {
        return s;
      }
      to = Mask::padding(lengths);
      return {};
    }
    case PAGODA_MASK_ADDITIVE:
    case PAGODA_MASK_RELATIVE_BIAS: {
      ConstTensor tensor;
      if (node.tensor == nullptr) return complain_null(field + ".tensor");
      if (Status s = to_tensor(field + ".tensor", node.tensor, tensor, ElementTypes::kFloat32); !s)
        return s;
      to = node.kind == PAGODA_MASK_ADDITIVE ? Mask::additive(tensor) : Mask::relative_bias(tensor);
      return {};
    }
    case PAGODA_MASK_BITS: {
      ArrayView<uint32_t> words;
      ArrayView<int64_t> row_offsets;
      if (Status s = to_array(field + ".words", node.words, words, 0); !s) return s;
      if (Status s = to_array(field + ".row_offsets", node.row_offsets, row_offsets, 0); !s) {
        return s;
      }
      to = Mask::bits(words, row_offsets);
      return {};
    }
    case PAGODA_MASK_FUNCTOR:
      if (node.functor == nullptr) return complain_null(field + ".functor");
      to = Mask::functor(node.functor, node.context);
      return {};
    default:
      return complain(field + ".kind", int64_t{node.kind},
                      "must be one of the values PAGODA_MASK_...");
  }
}

// Replaces the two expressions on top of the stack by their AND or OR.
Status combine(const std::string& field, const pagoda_mask_node& node, std::vector<Mask>& stack) {
  if (stack.size() < 2) {
    return complain(field + ".kind", int64_t{node.kind},
                    "an operator must follow its two operands (postfix)");
  }
  const Mask rhs = std::move(stack.back());
  stack.pop_back();
  stack.back() = node.kind == PAGODA_MASK_AND ? stack.back() & rhs : stack.back() | rhs;
  return {};
}

// "mask.nodes[i]", made once: every call has a mask.
const std::vector<std::string>& names_of_nodes() {
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> names;
    for (int64_t i = 0; i < kMaxMaskNodes; ++i) {
      names.push_back(engine::element_name("mask.nodes", i));
    }
    return names;
  }();
  return kNames;
}

}  // namespace

Status to_mask(const pagoda_mask* from, Mask& to) {
  pagoda_mask mask;
  if (Status s = read_optional("mask", from, mask); !s) return s;
  if (from == nullptr) return {};
  if (mask.num_nodes < 1 || mask.num_nodes > kMaxMaskNodes) {
    return complain("mask.num_nodes", mask.num_nodes,
                    "must be in [1, " + std::to_string(kMaxMaskNodes) + "]");
  }
  if (mask.nodes == nullptr) return complain_null("mask.nodes");

  std::vector<Mask> stack;
  const auto* next = reinterpret_cast<const std::byte*>(mask.nodes);
  size_t first_size = 0;
  for (int64_t i = 0; i < mask.num_nodes; ++i) {
    const std::string& field = names_of_nodes()[static_cast<size_t>(i)];
    pagoda_mask_node node;
    if (Status s = read_struct(field, reinterpret_cast<const pagoda_mask_node*>(next), node); !s) {
      return s;
    }
    if (i == 0) first_size = node.struct_size;
    if (node.struct_size != first_size) {
      return Status::invalid(field + ".struct_size", std::to_string(node.struct_size),
                             "must equal that of the first node, " + std::to_string(first_size));
    }
    next += first_size;
    if (Status s = check_reserved(field, node.reserved); !s) return s;
    const bool is_operator = node.kind == PAGODA_MASK_AND || node.kind == PAGODA_MASK_OR;
    if (!is_operator) stack.emplace_back();
    if (Status s = is_operator ? combine(field, node, stack) : to_leaf(field, node, stack.back());
        !s) {
      return s;
    }
  }
  if (stack.size() != 1) {
    return complain("mask.num_nodes", mask.num_nodes,
                    "the nodes must form one expression (postfix)");
  }
  to = std::move(stack.back());
  return {};
}

}  // namespace pagoda::c_api
