// walk() visits the properties of a Problem; recording and comparing a signature both use it.
#include "engine/signature.hpp"

#include <algorithm>
#include <array>

#include "engine/check.hpp"

namespace pagoda::engine {
namespace {

// Calls visit(name, value) for every number of the signature; stops when it returns false.
template <typename Visit>
bool walk_rows(const char* name, const core::RowView& view, Visit&& visit) {
  return visit(name, static_cast<int64_t>(view.dtype)) && visit(name, view.sequence_stride) &&
         visit(name, view.row_stride) && visit(name, view.head_stride);
}
template <typename Visit>
bool walk_keys(const char* name, const core::KVView& view, Visit&& visit) {
  return visit(name, static_cast<int64_t>(view.dtype)) && visit(name, view.outer_stride) &&
         visit(name, view.row_stride) && visit(name, view.head_stride);
}

template <typename Visit>
bool walk_mask(const MaskNode& node, Visit&& visit) {
  const bool same = visit("mask", static_cast<int64_t>(node.kind)) && visit("mask", node.left) &&
                    visit("mask", node.right) && visit("mask", node.chunk) &&
                    visit("mask", node.lhs) && visit("mask", node.rhs) &&
                    visit("mask", node.tensor.rank);
  if (!same) return false;
  for (size_t d = 0; d < static_cast<size_t>(node.tensor.rank); ++d) {
    if (!visit("mask", node.tensor.shape[d]) || !visit("mask", node.tensor.strides[d])) {
      return false;
    }
  }
  return true;
}

// Kernels that copy 16 bytes at a time, TMA among them, need it.
bool is_aligned(const void* data) { return reinterpret_cast<uintptr_t>(data) % 16 == 0; }

// The bounds that replace lengths in GPU memory, and what decides how kernels load.
template <typename Visit>
bool walk_bounds(const core::Problem& p, Visit&& visit) {
  return visit("q.data.is_aligned_to_16_bytes", is_aligned(p.q.data)) &&
         visit("kv.k.data.is_aligned_to_16_bytes", is_aligned(p.k.data)) &&
         visit("kv.v.data.is_aligned_to_16_bytes", is_aligned(p.v.data)) &&
         visit("q.device", p.device.index) && visit("q", p.total_q) &&
         visit("max_seqlen_q", p.max_seqlen_q_bound) &&
         visit("max_seqlen_kv", p.max_seqlen_kv_bound) &&
         visit("seqlens_q", !p.seqlens_q_valid.empty()) &&
         visit("cache_lengths", !p.cache_lengths.empty()) &&
         visit("kv.seqlens_kv", !p.seqlens_kv.empty());
}

template <typename Visit>
bool walk(const core::Problem& p, Visit&& visit) {
  return visit("q.device", static_cast<int64_t>(p.device.type)) &&
         (p.has_host_lengths || walk_bounds(p, visit)) && visit("q", p.batch) &&
         visit("q", p.num_q_heads) && visit("kv.k", p.num_kv_heads) && visit("q", p.head_dim_qk) &&
         visit("kv.v", p.head_dim_vo) && visit("q", p.max_seqlen_q) &&
         visit("cu_seqlens_q", p.is_ragged) && visit("lse", p.lse.data != nullptr) &&
         visit("row_max", p.row_max.data != nullptr) && walk_rows("q", p.q, visit) &&
         walk_rows("out", p.out, visit) && walk_rows("lse", p.lse, visit) &&
         walk_rows("row_max", p.row_max, visit) && walk_keys("kv.k", p.k, visit) &&
         walk_keys("kv.v", p.v, visit) && visit("kv", static_cast<int64_t>(p.kv_kind)) &&
         visit("kv", p.page_size) && visit("kv", p.max_seqlen_kv) &&
         visit("kv.table", p.block_table.data != nullptr) &&
         visit("kv.table", p.block_table.row_stride) && visit("sinks", !p.sinks.empty()) &&
         visit("score_mod.softcap", p.score_mod.softcap != 0.0F) &&
         visit("score_mod.alibi_slopes", !p.score_mod.alibi_slopes.empty()) &&
         visit("score_mod.functor", p.score_mod.functor != nullptr) &&
         visit("functor", p.functor.number()) && visit("leftpad_kv", !p.leftpad_kv.empty()) &&
         visit("q_scale_per_head", p.q_scales.values != nullptr) &&
         visit("kv_scales.k_per_head", p.k_scales.values != nullptr) &&
         visit("kv_scales.v_per_head", p.v_scales.values != nullptr) &&
         visit("mask", static_cast<int64_t>(p.mask.size())) &&
         std::all_of(p.mask.begin(), p.mask.end(),
                     [&](const MaskNode& node) { return walk_mask(node, visit); });
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
  walk(problem, [&](const char*, int64_t value) {
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
  const bool is_same = walk(problem, [&](const char* name, int64_t value) {
    const int64_t planned = numbers_[i++];
    if (planned != value) found = {name, -1, value, planned};
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
  return complain(element_name(d.name, d.index), d.value,
                  "the plan was made for " + std::to_string(d.planned));
}

bool Signature::matches(const core::Problem& problem) const {
  return difference(problem).name == nullptr;
}

}  // namespace pagoda::engine
