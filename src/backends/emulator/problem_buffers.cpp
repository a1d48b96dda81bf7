// Byte ranges of the operands.
#include "backends/emulator/problem_buffers.hpp"

#include <algorithm>

namespace pagoda::emulator {
namespace {

// The range from the first to the last byte of a view.
ConstTensor extent(const void* data, DType dtype, std::initializer_list<int64_t> shape,
                   std::initializer_list<int64_t> strides) {
  ConstTensor tensor{.data = data, .dtype = dtype, .rank = static_cast<int32_t>(shape.size())};
  std::copy(shape.begin(), shape.end(), tensor.shape.begin());
  std::copy(strides.begin(), strides.end(), tensor.strides.begin());
  return tensor;
}

ConstTensor rows_extent(const core::Problem& p, const core::RowView& view, int32_t dim) {
  if (view.data == nullptr) return {};
  if (p.is_ragged) {
    return extent(view.data, view.dtype, {p.total_q, p.num_q_heads, dim},
                  {view.row_stride, view.head_stride, 1});
  }
  return extent(view.data, view.dtype, {p.batch, p.max_seqlen_q, p.num_q_heads, dim},
                {view.sequence_stride, view.row_stride, view.head_stride, 1});
}

Tensor written(const ConstTensor& tensor) {
  Tensor result{.data = const_cast<void*>(tensor.data), .dtype = tensor.dtype};
  result.rank = tensor.rank;
  result.shape = tensor.shape;
  result.strides = tensor.strides;
  return result;
}

ConstTensor cache_extent(const core::Problem& p, const core::KVView& view, int32_t dim) {
  const bool is_paged = p.kv_kind == core::KVKind::kPaged;
  const int64_t outer = is_paged ? p.num_pages : p.kv_kind == core::KVKind::kDense ? p.batch : 1;
  const int64_t rows = is_paged                            ? p.page_size
                       : p.kv_kind == core::KVKind::kDense ? p.max_seqlen_kv
                                                           : p.total_kv;
  return extent(view.data, view.dtype, {outer, rows, p.num_kv_heads, dim},
                {view.outer_stride, view.row_stride, view.head_stride, 1});
}

ConstTensor scales_extent(const core::Problem& p, const core::HeadScales& scales, int32_t heads) {
  if (scales.values == nullptr) return {};
  return extent(scales.values, DType::kF32, {p.batch, heads / scales.group},
                {scales.sequence_stride, scales.head_stride});
}

void add_masks(const core::Problem& p, CallBuffers& buffers) {
  for (const MaskNode& node : p.mask) {
    buffers.reads("mask.valid_lengths", node.valid_lengths)
        .reads("mask.tensor", node.tensor)
        .reads("mask.words", node.words)
        .reads("mask.row_offsets", node.row_offsets);
  }
}

void add_lengths(const core::Problem& p, CallBuffers& buffers) {
  buffers.reads("cu_seqlens_q", p.cu_seqlens_q)
      .reads("seqlens_q", p.seqlens_q_valid)
      .reads("cache_lengths", p.cache_lengths)
      .reads("leftpad_kv", p.leftpad_kv)
      .reads("seqlens_kv", p.seqlens_kv)
      .reads("cu_seqlens_kv", p.cu_seqlens_kv)
      .reads("indptr", p.csr.indptr)
      .reads("indices", p.csr.indices)
      .reads("last_page_len", p.csr.last_page_len);
  if (p.block_table.data != nullptr) {
    const auto entries = static_cast<size_t>(core::extent(p.block_table));
    buffers.reads("block_table", std::span(p.block_table.data, entries));
  }
}

}  // namespace

CallBuffers buffers_of(const core::Problem& p, int64_t zeroed_workspace_bytes,
                       std::span<std::byte> workspace) {
  CallBuffers buffers;
  buffers.reads("q", rows_extent(p, p.q, p.head_dim_qk))
      .reads("k", cache_extent(p, p.k, p.head_dim_qk))
      .reads("v", cache_extent(p, p.v, p.head_dim_vo))
      .writes("out", written(rows_extent(p, p.out, p.head_dim_vo)))
      .writes("lse", written(rows_extent(p, p.lse, 1)))
      .writes("row_max", written(rows_extent(p, p.row_max, 1)))
      .reads("sinks", p.sinks)
      .reads("alibi_slopes", p.score_mod.alibi_slopes)
      .reads("q_scale_per_head", scales_extent(p, p.q_scales, p.num_q_heads))
      .reads("kv_scales.k_per_head", scales_extent(p, p.k_scales, p.num_kv_heads))
      .reads("kv_scales.v_per_head", scales_extent(p, p.v_scales, p.num_kv_heads));
  for (const FunctorCall::Array& array : p.functor.arrays) {
    const auto bytes = static_cast<size_t>(array.bytes);
    buffers.reads("functor.arrays", std::span(static_cast<const std::byte*>(array.data), bytes));
  }
  add_lengths(p, buffers);
  add_masks(p, buffers);
  if (!workspace.empty()) buffers.workspace(workspace, zeroed_workspace_bytes);
  return buffers;
}

}  // namespace pagoda::emulator
