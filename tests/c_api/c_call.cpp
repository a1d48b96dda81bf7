// The inverse of src/c_api.
#include "c_call.hpp"

#include <utility>

namespace pagoda::test {
namespace {

pagoda_dtype to_c(DType dtype) {
  switch (dtype) {
    case DType::kF32: return PAGODA_FLOAT32;
    case DType::kF16: return PAGODA_FLOAT16;
    case DType::kBF16: return PAGODA_BFLOAT16;
    case DType::kF8E4M3: return PAGODA_FLOAT8_E4M3FN;
  }
  return {255, 0, 0};  // a fuzzer's
}

pagoda_device to_c(Device device) {
  switch (device.type) {
    case DeviceType::kCpu: return {PAGODA_CPU, 0};
    case DeviceType::kCuda: return {PAGODA_CUDA, device.index};
    case DeviceType::kHip: return {PAGODA_ROCM, device.index};
  }
  return {255, 0};
}

pagoda_mask_kind to_c(MaskKind kind) { return static_cast<pagoda_mask_kind>(kind); }

void set_cache(const DenseKV& from, CViews& views, pagoda_kv_cache& to) {
  to.seqlens_kv = views.array(from.seqlens_kv, PAGODA_INT32);
}

void set_cache(const RaggedKV& from, CViews& views, pagoda_kv_cache& to) {
  to.seqlens_kv = views.array(from.seqlens_kv, PAGODA_INT32);
  to.cu_seqlens_kv = views.array(from.cu_seqlens_kv, PAGODA_INT32);
}

void set_cache(const PagedKV& from, CViews& views, pagoda_kv_cache& to) {
  to.layout = static_cast<pagoda_page_layout>(from.layout);
  to.page_size = from.page_size;
  if (const auto* csr = std::get_if<CsrPages>(&from.table)) {
    to.indptr = views.array(csr->indptr, PAGODA_INT32);
    to.indices = views.array(csr->indices, PAGODA_INT32);
    to.last_page_len = views.array(csr->last_page_len, PAGODA_INT32);
    return;
  }
  const auto& table = std::get<BlockTable>(from.table);
  to.seqlens_kv = views.array(table.seqlens_kv, PAGODA_INT32);
  to.block_table =
      views.add(table.pages.data, PAGODA_INT32, {table.pages.rows, table.pages.columns},
                {table.pages.row_stride, 1}, table.pages.device);
}

pagoda_mask_node to_c(const MaskNode& from, CViews& views) {
  pagoda_mask_node to{.struct_size = sizeof to, .kind = to_c(from.kind)};
  to.left = from.left;
  to.right = from.right;
  to.chunk = from.chunk;
  to.valid_lengths = views.array(from.valid_lengths, PAGODA_INT32);
  to.tensor = views.tensor(from.tensor);
  if (from.kind == MaskKind::kBits) {
    to.words =
        views.add(from.words.data(), PAGODA_UINT32, {from.words.size()}, {1}, from.words.device());
  }
  to.row_offsets = views.array(from.row_offsets, PAGODA_INT64);
  to.functor = from.functor;
  to.context = from.context;
  return to;
}

}  // namespace

const pagoda_tensor* CViews::add(const void* data, pagoda_dtype dtype, std::vector<int64_t> shape,
                                 std::vector<int64_t> strides, Device device) {
  View& view = views_.emplace_back();
  const auto rank = static_cast<int32_t>(shape.size());
  view.shape = std::move(shape);
  view.strides = std::move(strides);
  view.shape.resize(kMaxRank);  // a test may raise the rank
  view.strides.resize(kMaxRank);
  view.tensor = {.data = const_cast<void*>(data),
                 .device = to_c(device),
                 .ndim = rank,
                 .dtype = dtype,
                 .shape = view.shape.data(),
                 .strides = view.strides.data()};
  return &view.tensor;
}

const pagoda_tensor* CViews::tensor(const ConstTensor& from) {
  if (!from.present()) return nullptr;
  const pagoda_tensor* to = add(from.data, to_c(from.dtype), {from.shape.begin(), from.shape.end()},
                                {from.strides.begin(), from.strides.end()}, from.device);
  edit(to).ndim = from.rank;
  return to;
}

CCall::CCall(const Attention& a) {
  std::visit(
      [&](const auto& from) {
        kv.k = views.tensor(from.k);
        kv.v = views.tensor(from.v);
        set_cache(from, views, kv);
      },
      a.kv);
  kv_scales.k = a.kv_scales.k;
  kv_scales.v = a.kv_scales.v;
  kv_scales.k_per_head = views.tensor(a.kv_scales.k_per_head);
  kv_scales.v_per_head = views.tensor(a.kv_scales.v_per_head);
  for (const MaskNode& node : a.mask.nodes()) nodes.push_back(to_c(node, views));
  mask.nodes = nodes.data();
  mask.num_nodes = static_cast<int64_t>(nodes.size());
  score_mod.softcap = a.score_mod.softcap;
  score_mod.alibi_slopes = views.array(a.score_mod.alibi_slopes, PAGODA_FLOAT32);
  score_mod.functor = a.score_mod.functor;
  score_mod.context = a.score_mod.context;

  attention.q = views.tensor(a.q);
  attention.cu_seqlens_q = views.array(a.cu_seqlens_q, PAGODA_INT32);
  attention.seqlens_q = views.array(a.seqlens_q, PAGODA_INT32);
  attention.kv = &kv;
  attention.kv_scales = &kv_scales;
  attention.cache_lengths = views.array(a.cache_lengths, PAGODA_INT32);
  attention.max_seqlen_q = a.max_seqlen_q;
  attention.max_seqlen_kv = a.max_seqlen_kv;
  attention.softmax_scale = a.softmax_scale.value_or(0.0F);
  attention.q_scale = a.q_scale;
  attention.out_scale = a.out_scale;
  attention.mask = &mask;
  attention.score_mod = &score_mod;
  attention.sinks = views.array(a.sinks, PAGODA_FLOAT32);
  attention.out = views.tensor(a.out);
  attention.lse = views.tensor(a.lse);
  attention.lse_base = static_cast<pagoda_log_base>(a.lse_base);
  attention.row_max = views.tensor(a.row_max);
  attention.leftpad_kv = views.array(a.leftpad_kv, PAGODA_INT32);
  attention.q_scale_per_head = views.tensor(a.q_scale_per_head);
  attention.zero_padding_rows = a.zero_padding_rows ? 1 : 0;
}

}  // namespace pagoda::test
