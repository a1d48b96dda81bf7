// walk() visits the properties of a Problem; recording and comparing a signature both use it.
#include "engine/signature.hpp"

#include <algorithm>
#include <array>

#include "core/v_inside_k.hpp"
#include "engine/check.hpp"

namespace pagoda::engine {
namespace {

using Text = PropertyText;

// Names of a view's properties: its dtype, and its strides in elements.
struct ViewNames {
  const char *dtype, *outer_stride, *row_stride, *head_stride;
};
constexpr ViewNames kQ = {"q.dtype", "q.sequence_stride", "q.row_stride", "q.head_stride"};
constexpr ViewNames kOut = {"out.dtype", "out.sequence_stride", "out.row_stride",
                            "out.head_stride"};
constexpr ViewNames kLse = {"lse.dtype", "lse.sequence_stride", "lse.row_stride",
                            "lse.head_stride"};
constexpr ViewNames kRowMax = {"row_max.dtype", "row_max.sequence_stride", "row_max.row_stride",
                               "row_max.head_stride"};
// The outer stride of a paged cache is that of pages.
constexpr ViewNames kK = {"kv.k.dtype", "kv.k.outer_stride", "kv.k.row_stride", "kv.k.head_stride"};
constexpr ViewNames kV = {"kv.v.dtype", "kv.v.outer_stride", "kv.v.row_stride", "kv.v.head_stride"};

// These call visit(name, value, text = Text::kNumber) for every number of the signature, and stop
// when it returns false.
template <typename Visit>
bool walk_view(const ViewNames& names, const core::RowView& view, Visit&& visit) {
  return visit(names.dtype, static_cast<int64_t>(view.dtype), Text::kDType) &&
         visit(names.outer_stride, view.sequence_stride) &&
         visit(names.row_stride, view.row_stride) && visit(names.head_stride, view.head_stride);
}
template <typename Visit>
bool walk_view(const ViewNames& names, const core::KVView& view, Visit&& visit) {
  return visit(names.dtype, static_cast<int64_t>(view.dtype), Text::kDType) &&
         visit(names.outer_stride, view.outer_stride) && visit(names.row_stride, view.row_stride) &&
         visit(names.head_stride, view.head_stride);
}

// The first padding with the lengths of this one. The intersection of two paddings is an interval
// only where they are the same, and kernels are chosen by that (mask::narrow()).
int64_t first_with_lengths_of(const MaskNode& node, const core::Problem& p) {
  if (node.kind != MaskKind::kPadding) return 0;
  const auto is_same = [&](const MaskNode& other) {
    return other.kind == MaskKind::kPadding &&
           other.valid_lengths.data() == node.valid_lengths.data();
  };
  return std::find_if(p.mask.begin(), p.mask.end(), is_same) - p.mask.begin();
}

template <typename Visit>
bool walk_mask(const core::Problem& p, const MaskNode& node, Visit&& visit) {
  const bool same = visit("mask.kind", static_cast<int64_t>(node.kind)) &&
                    visit("mask.left", node.left) && visit("mask.right", node.right) &&
                    visit("mask.chunk", node.chunk) && visit("mask.lhs", node.lhs) &&
                    visit("mask.rhs", node.rhs) &&
                    visit("mask.first_with_its_lengths", first_with_lengths_of(node, p)) &&
                    visit("mask.tensor.rank", node.tensor.rank);
  if (!same) return false;
  for (size_t d = 0; d < static_cast<size_t>(node.tensor.rank); ++d) {
    if (!visit("mask.tensor.shape", node.tensor.shape[d]) ||
        !visit("mask.tensor.strides", node.tensor.strides[d])) {
      return false;
    }
  }
  return true;
}

// Kernels that copy 16 bytes at a time, TMA among them, need it.
bool is_aligned(const void* data) { return reinterpret_cast<uintptr_t>(data) % 16 == 0; }

// Kernels for latent attention read V from K.
bool needs_v_inside_k(const core::Problem& p) {
  return p.head_dim_qk > core::kMostDimsOfSeparateV && core::is_v_inside_k(p);
}

// The bounds that replace lengths in GPU memory, and what decides how kernels load.
template <typename Visit>
bool walk_bounds(const core::Problem& p, Visit&& visit) {
  return visit("q.data.is_aligned_to_16_bytes", is_aligned(p.q.data)) &&
         visit("kv.k.data.is_aligned_to_16_bytes", is_aligned(p.k.data)) &&
         visit("kv.v.data.is_aligned_to_16_bytes", is_aligned(p.v.data)) &&
         visit("q.device", p.device.index) && visit("q.total_q", p.total_q) &&
         visit("max_seqlen_q", p.max_seqlen_q_bound) &&
         visit("max_seqlen_kv", p.max_seqlen_kv_bound) &&
         visit("seqlens_q", !p.seqlens_q_valid.empty(), Text::kPresence) &&
         visit("cache_lengths", !p.cache_lengths.empty(), Text::kPresence) &&
         visit("kv.seqlens_kv", !p.seqlens_kv.empty(), Text::kPresence);
}

template <typename Visit>
bool walk(const core::Problem& p, Visit&& visit) {
  const auto is_given = [&](const char* name, bool given) {
    return visit(name, given, Text::kPresence);
  };
  return visit("q.device", static_cast<int64_t>(p.device.type)) &&
         is_given("cu_seqlens_q", p.is_ragged) &&
         visit("kv", static_cast<int64_t>(p.kv_kind), Text::kCacheKind) &&
         (p.has_host_lengths || walk_bounds(p, visit)) && visit("q.batch", p.batch) &&
         visit("q.num_q_heads", p.num_q_heads) && visit("kv.k.num_kv_heads", p.num_kv_heads) &&
         visit("q.head_dim_qk", p.head_dim_qk) && visit("kv.v.head_dim_vo", p.head_dim_vo) &&
         visit("q.seqlen_q", p.max_seqlen_q) && is_given("lse", p.lse.data != nullptr) &&
         is_given("row_max", p.row_max.data != nullptr) && walk_view(kQ, p.q, visit) &&
         walk_view(kOut, p.out, visit) && walk_view(kLse, p.lse, visit) &&
         walk_view(kRowMax, p.row_max, visit) && walk_view(kK, p.k, visit) &&
         walk_view(kV, p.v, visit) && visit("kv.v.is_inside_k", needs_v_inside_k(p)) &&
         visit("kv.page_size", p.page_size) && visit("kv.k.max_seqlen_kv", p.max_seqlen_kv) &&
         is_given("kv.table.pages", p.block_table.data != nullptr) &&
         visit("kv.table.pages.row_stride", p.block_table.row_stride) &&
         is_given("sinks", !p.sinks.empty()) &&
         is_given("score_mod.softcap", p.score_mod.softcap != 0.0F) &&
         is_given("score_mod.alibi_slopes", !p.score_mod.alibi_slopes.empty()) &&
         is_given("score_mod.functor", p.score_mod.functor != nullptr) &&
         visit("functor", p.functor.number()) && is_given("leftpad_kv", !p.leftpad_kv.empty()) &&
         is_given("q_scale_per_head", p.q_scales.values != nullptr) &&
         is_given("kv_scales.k_per_head", p.k_scales.values != nullptr) &&
         is_given("kv_scales.v_per_head", p.v_scales.values != nullptr) &&
         visit("mask.nodes().size()", static_cast<int64_t>(p.mask.size())) &&
         std::all_of(p.mask.begin(), p.mask.end(),
                     [&](const MaskNode& node) { return walk_mask(p, node, visit); });
}

std::string text_of(int64_t value, Text text) {
  switch (text) {
    case Text::kNumber: return std::to_string(value);
    case Text::kPresence: return value != 0 ? "given" : "absent";
    case Text::kDType: return name(static_cast<DType>(value));
    case Text::kCacheKind: break;
  }
  switch (static_cast<core::KVKind>(value)) {
    case core::KVKind::kDense: return "dense";
    case core::KVKind::kRagged: return "ragged";
    case core::KVKind::kPaged: return "paged";
  }
  return "?";
}

std::string planned_text(int64_t planned, Text text) {
  if (text != Text::kPresence) return text_of(planned, text);
  return planned != 0 ? "a call with it" : "a call without it";
}

struct Lengths {
  int32_t q, rows, kv, position;
};

Lengths lengths_of(const core::Problem& p, int32_t b) {
  return {p.seqlen_q(b), p.num_rows(b), p.seqlen_kv(b), p.q_position(b)};
}

}  // namespace

Signature::Signature(const core::Problem& problem) {
  numbers_.reserve(80);
  walk(problem, [&](const char*, int64_t value, Text = Text::kNumber) {
    numbers_.push_back(value);
    return true;
  });
  if (!problem.has_host_lengths) return;
  lengths_.reserve(static_cast<size_t>(problem.batch) * 4);
  for (int32_t b = 0; b < problem.batch; ++b) {
    const Lengths n = lengths_of(problem, b);
    lengths_.insert(lengths_.end(), {n.q, n.rows, n.kv, n.position});
  }
  for (const MaskNode& node : problem.mask) {
    const std::span<const int32_t> lengths = core::host_elements(node.valid_lengths);
    valid_.insert(valid_.end(), lengths.begin(), lengths.end());
  }
}

Signature::Difference Signature::difference(const core::Problem& problem) const {
  // Two walks have different numbers of values only after a value that differs (rank, mask size).
  size_t i = 0;
  Difference found;
  const bool is_same =
      walk(problem, [&](const char* name, int64_t value, Text text = Text::kNumber) {
        const int64_t planned = numbers_[i++];
        if (planned != value) found = {name, -1, value, planned, text};
        return planned == value;
      });
  if (!is_same || !problem.has_host_lengths) return found;
  const int32_t* planned = lengths_.data();
  for (int32_t b = 0; b < problem.batch; ++b, planned += 4) {
    const Lengths n = lengths_of(problem, b);
    if (n.q == planned[0] && n.rows == planned[1] && n.kv == planned[2] && n.position == planned[3])
        [[likely]] {
      continue;
    }
    if (n.q != planned[0]) return {"seqlen_q", b, n.q, planned[0]};
    if (n.rows != planned[1]) return {"num_rows", b, n.rows, planned[1]};
    if (n.kv != planned[2]) return {"seqlen_kv", b, n.kv, planned[2]};
    return {"cache_length", b, n.position, planned[3]};
  }
  const int32_t* valid = valid_.data();
  for (const MaskNode& node : problem.mask) {
    for (const int32_t length : core::host_elements(node.valid_lengths)) {
      if (length != *valid) return {"mask.valid_lengths", -1, length, *valid};
      ++valid;
    }
  }
  return {};
}

Status Signature::match(const core::Problem& problem) const {
  const Difference d = difference(problem);
  if (d.name == nullptr) return {};
  return complain(element_name(d.name, d.index), text_of(d.value, d.text),
                  "the plan was made for " + planned_text(d.planned, d.text));
}

bool Signature::matches(const core::Problem& problem) const {
  return difference(problem).name == nullptr;
}

}  // namespace pagoda::engine
