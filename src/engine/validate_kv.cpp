// Checks keys, values, page tables and lengths.
#include <algorithm>
#include <cmath>
#include <type_traits>
#include <utility>

#include "core/array_elements.hpp"
#include "core/int_math.hpp"
#include "engine/validate_steps.hpp"

namespace pagoda::engine {
namespace {

// The pointer of a block table without entries: a Problem whose pointer is null has CSR pages.
constexpr int32_t kNoPages[1] = {};

core::KVView kv_view(const ConstTensor& t, int32_t outer, int32_t row, int32_t head) {
  return {.data = t.data,
          .dtype = t.dtype,
          .outer_stride = outer < 0 ? 0 : t.strides[static_cast<size_t>(outer)],
          .row_stride = t.strides[static_cast<size_t>(row)],
          .head_stride = t.strides[static_cast<size_t>(head)]};
}

Status check_tensors(const DenseKV& kv, core::Problem& p) {
  const Extent batch{"batch", p.batch}, rows{"max_seqlen_kv"};
  if (Status s = check_tensor(
          "kv.k", kv.k,
          {batch, rows, {.name = "num_kv_heads", .least = 1}, {"head_dim_qk", p.head_dim_qk}});
      !s) {
    return s;
  }
  p.kv_kind = core::KVKind::kDense;
  p.k = kv_view(kv.k, 0, 1, 2);
  p.v = kv_view(kv.v, 0, 1, 2);
  p.num_kv_heads = static_cast<int32_t>(kv.k.shape[2]);
  p.max_seqlen_kv = kv.k.shape[1];
  return check_tensor(
      "kv.v", kv.v,
      {batch, {"max_seqlen_kv", kv.k.shape[1]}, {"num_kv_heads", kv.k.shape[2]}, {"head_dim_vo"}});
}

Status check_tensors(const RaggedKV& kv, core::Problem& p) {
  if (Status s = check_tensor(
          "kv.k", kv.k,
          {{"total_kv"}, {.name = "num_kv_heads", .least = 1}, {"head_dim_qk", p.head_dim_qk}});
      !s) {
    return s;
  }
  p.kv_kind = core::KVKind::kRagged;
  p.k = kv_view(kv.k, -1, 0, 1);
  p.v = kv_view(kv.v, -1, 0, 1);
  p.num_kv_heads = static_cast<int32_t>(kv.k.shape[1]);
  p.total_kv = kv.k.shape[0];
  return check_tensor(
      "kv.v", kv.v,
      {{"total_kv", kv.k.shape[0]}, {"num_kv_heads", kv.k.shape[1]}, {"head_dim_vo"}});
}

Status check_tensors(const PagedKV& kv, core::Problem& p) {
  if (kv.layout != PageLayout::kNHD && kv.layout != PageLayout::kHND) {
    return complain("kv.layout", static_cast<int64_t>(kv.layout), "must be kNHD or kHND");
  }
  const bool is_nhd = kv.layout == PageLayout::kNHD;
  const Extent pages{"num_pages"}, dim{"head_dim_qk", p.head_dim_qk};
  const Extent rows{.name = "page_size", .least = 1}, heads{.name = "num_kv_heads", .least = 1};
  if (Status s = is_nhd ? check_tensor("kv.k", kv.k, {pages, rows, heads, dim})
                        : check_tensor("kv.k", kv.k, {pages, heads, rows, dim});
      !s) {
    return s;
  }
  const int32_t row_axis = is_nhd ? 1 : 2;
  const int32_t head_axis = is_nhd ? 2 : 1;
  p.kv_kind = core::KVKind::kPaged;
  p.k = kv_view(kv.k, 0, row_axis, head_axis);
  p.v = kv_view(kv.v, 0, row_axis, head_axis);
  p.num_kv_heads = static_cast<int32_t>(kv.k.shape[static_cast<size_t>(head_axis)]);
  p.page_size = static_cast<int32_t>(kv.k.shape[static_cast<size_t>(row_axis)]);
  p.num_pages = kv.k.shape[0];
  if (kv.page_size != 0 && kv.page_size != p.page_size) {
    const bool fits_other = kv.page_size == p.num_kv_heads;
    return complain("kv.page_size", int64_t{kv.page_size},
                    std::string("layout ") + (is_nhd ? "NHD" : "HND") + " reads " +
                        std::to_string(p.page_size) + " from kv.k.shape" +
                        (fits_other ? std::string("; with layout ") + (is_nhd ? "HND" : "NHD") +
                                          " they would agree"
                                    : std::string()));
  }
  const Extent same_rows{"page_size", p.page_size}, same_heads{"num_kv_heads", p.num_kv_heads};
  const Extent same_pages{"num_pages", kv.k.shape[0]}, dim_vo{"head_dim_vo"};
  return is_nhd ? check_tensor("kv.v", kv.v, {same_pages, same_rows, same_heads, dim_vo})
                : check_tensor("kv.v", kv.v, {same_pages, same_heads, same_rows, dim_vo});
}

Status check_lengths_of(const DenseKV& kv, core::Problem& p) {
  p.seqlens_kv = core::elements(kv.seqlens_kv);
  if (kv.seqlens_kv.empty()) return {};
  return check_lengths("kv.seqlens_kv", kv.seqlens_kv, p.batch, 0, p.max_seqlen_kv, "max_seqlen_kv",
                       contents_of(p));
}

Status check_lengths_of(const RaggedKV& kv, core::Problem& p) {
  p.cu_seqlens_kv = core::elements(kv.cu_seqlens_kv);
  p.seqlens_kv = core::elements(kv.seqlens_kv);
  if (Status s = check_offsets("kv.cu_seqlens_kv", kv.cu_seqlens_kv, p.batch, kv.k.shape[0],
                               "total_kv = kv.k.shape[0]", contents_of(p));
      !s) {
    return s;
  }
  return check_used("kv.seqlens_kv", kv.seqlens_kv, kv.cu_seqlens_kv, contents_of(p));
}

Status check_table(const BlockTable& table, int64_t num_pages, core::Problem& p) {
  const MatrixView<int32_t>& pages = table.pages;
  p.block_table = pages;
  p.seqlens_kv = core::elements(table.seqlens_kv);
  const int64_t width = pages.columns;
  if (pages.rows != p.batch) {
    return complain("kv.table.pages.rows", pages.rows,
                    "must equal batch = " + std::to_string(p.batch));
  }
  if (width < 0 || width > INT32_MAX) {
    return complain("kv.table.pages.columns", width, "must be in [0, 2147483647]");
  }
  if (p.batch > 1 && pages.row_stride < width) {
    return complain("kv.table.pages.row_stride", pages.row_stride,
                    "must be at least columns = " + std::to_string(width));
  }
  int64_t entries = 0;
  if (__builtin_mul_overflow(std::max<int64_t>(p.batch - 1, 0), pages.row_stride, &entries) ||
      entries > INT64_MAX / 8 - width) {
    return complain("kv.table.pages.row_stride", pages.row_stride,
                    "the table must lie inside the address space");
  }
  if (Status s = check_address("kv.table.pages", pages.data, p.batch * width, alignof(int32_t));
      !s) {
    return s;
  }
  if (pages.data == nullptr) p.block_table = {kNoPages, pages.rows};
  const int64_t capacity = num_pages == 0 ? 0 : std::min<int64_t>(width * p.page_size, INT32_MAX);
  return check_lengths(
      "kv.table.seqlens_kv", table.seqlens_kv, p.batch, 0, capacity,
      num_pages == 0 ? "capacity of a cache without pages" : "pages.columns * page_size",
      contents_of(p));
}

Status check_table(const CsrPages& table, int64_t num_pages, core::Problem& p) {
  p.csr = {core::elements(table.indptr), core::elements(table.indices),
           core::elements(table.last_page_len)};
  const int64_t size = table.indices.size();
  if (Status s = check_offsets("kv.table.indptr", table.indptr, p.batch, size, "indices.size()",
                               contents_of(p));
      !s) {
    return s;
  }
  if (Status s = check_address("kv.table.indices", table.indices); !s) return s;
  if (table.last_page_len.size() != p.batch) {
    return complain("kv.table.last_page_len.size()", table.last_page_len.size(),
                    "must equal batch = " + std::to_string(p.batch));
  }
  if (Status s = check_address("kv.table.last_page_len", table.last_page_len); !s) return s;
  if (!p.has_host_lengths) return {};
  if (num_pages == 0 && p.csr.indptr.back() > 0) {
    return complain(element_name("kv.table.indptr", p.batch), int64_t{p.csr.indptr.back()},
                    "must be 0: the cache has no pages");
  }
  for (int32_t b = 0; b < p.batch; ++b) {
    const auto i = static_cast<size_t>(b);
    const int64_t pages = p.csr.indptr[i + 1] - p.csr.indptr[i];
    if (pages == 0) continue;
    const int32_t last = p.csr.last_page_len[i];
    if (last < 1 || last > p.page_size) {
      return complain(element_name("kv.table.last_page_len", b), int64_t{last},
                      "must be in [1, page_size = " + std::to_string(p.page_size) + "]");
    }
    if ((pages - 1) * p.page_size + last > INT32_MAX) {
      return complain(element_name("kv.table.indptr", b + 1), int64_t{p.csr.indptr[i + 1]},
                      "a sequence must have at most 2147483647 keys");
    }
  }
  return {};
}

Status check_lengths_of(const PagedKV& kv, core::Problem& p) {
  return std::visit([&](const auto& table) { return check_table(table, kv.k.shape[0], p); },
                    kv.table);
}

// The likeliest reason for heads that do not fit.
template <class Cache>
std::string hint_at_layout(const Cache& kv, const core::Problem& p) {
  if constexpr (std::is_same_v<Cache, PagedKV>) {
    const bool is_nhd = kv.layout == PageLayout::kNHD;
    if (p.num_q_heads % p.page_size == 0) {
      return std::string("; kv.layout is ") + (is_nhd ? "NHD" : "HND") + ", with " +
             (is_nhd ? "HND" : "NHD") + " it is " + std::to_string(p.page_size);
    }
  }
  return {};
}

// K and V share a dtype: that of q, or fp8 if q has 16 bits.
Status check_dtypes(const ConstTensor& k, const ConstTensor& v, DType q) {
  const bool may_be_fp8 = q == DType::kF16 || q == DType::kBF16;
  if (!(may_be_fp8 && k.dtype == DType::kF8E4M3)) {
    if (Status s = check_dtype("kv.k", k, q,
                               may_be_fp8 ? ", the dtype of q, or fp8_e4m3" : ", the dtype of q");
        !s) {
      return s;
    }
  }
  return check_dtype("kv.v", v, k.dtype, ", the dtype of kv.k");
}

}  // namespace

Status check_head_scales(std::string_view name, const ConstTensor& scales, int64_t batch,
                         const Extent& heads, Contents contents) {
  if (!scales.present()) return {};
  const bool is_by_sequence = scales.rank == 2 && batch >= 0;
  if (batch >= 0 && scales.rank != 1 && scales.rank != 2) {
    const std::string of_heads = std::string(heads.name) + "]";
    return complain(std::string(name) + ".rank", int64_t{scales.rank},
                    "must be 1 [" + of_heads + ", or 2 [batch, " + of_heads);
  }
  if (Status s = is_by_sequence
                     ? check_tensor(name, scales, {{"batch", batch}, heads}, LastDim::kAnyStride)
                     : check_tensor(name, scales, {heads}, LastDim::kAnyStride);
      !s) {
    return s;
  }
  if (Status s = check_dtype(name, scales, DType::kF32, ""); !s) return s;
  if (contents == Contents::kUnread) return {};
  const core::HeadScales values = head_scales(scales, 1.0F);
  const int64_t rows = is_by_sequence ? batch : 1;
  for (int32_t b = 0; b < rows; ++b) {
    for (int32_t h = 0; h < heads.extent; ++h) {
      const float scale = values.of(b, h);
      if (std::isfinite(scale) && scale > 0) continue;
      const std::string sequence = is_by_sequence ? element_name(name, b) : std::string(name);
      return complain(element_name(sequence, h), double{scale}, "must be finite and above 0");
    }
  }
  return {};
}

core::HeadScales head_scales(const ConstTensor& per_head, float shared) {
  if (!per_head.present()) return {.shared = shared};
  const bool is_by_sequence = per_head.rank == 2;
  return {.shared = shared,
          .values = static_cast<const float*>(per_head.data),
          .sequence_stride = is_by_sequence ? per_head.strides[0] : 0,
          .head_stride = per_head.strides[is_by_sequence ? 1 : 0]};
}

Status check_kv_scales(const KVScales& scales, int64_t batch, int64_t num_kv_heads,
                       Contents contents) {
  const std::pair<const char*, float> per_tensor[] = {{"kv_scales.k", scales.k},
                                                      {"kv_scales.v", scales.v}};
  for (const auto& [name, scale] : per_tensor) {
    if (!std::isfinite(scale) || scale <= 0) {
      return complain(name, double{scale}, "must be finite and above 0");
    }
  }
  const Extent heads{"num_kv_heads", num_kv_heads};
  if (Status s =
          check_head_scales("kv_scales.k_per_head", scales.k_per_head, batch, heads, contents);
      !s) {
    return s;
  }
  return check_head_scales("kv_scales.v_per_head", scales.v_per_head, batch, heads, contents);
}

Status check_cache(const Attention& a, core::Problem& p) {
  return std::visit(
      [&](const auto& kv) -> Status {
        if (!kv.k.present()) return complain("kv.k.rank", int64_t{0}, "kv.k is required");
        if (!kv.v.present()) return complain("kv.v.rank", int64_t{0}, "kv.v is required");
        if (Status s = check_tensors(kv, p); !s) return s;
        if (Status s = check_head_dim("kv.v", kv.v); !s) return s;
        p.head_dim_vo = static_cast<int32_t>(kv.v.shape[static_cast<size_t>(kv.v.rank - 1)]);
        if (p.num_q_heads % p.num_kv_heads != 0) {
          return complain(element_name("q.shape", a.q.rank - 2), int64_t{p.num_q_heads},
                          "num_q_heads must be a multiple of num_kv_heads = " +
                              std::to_string(p.num_kv_heads) + hint_at_layout(kv, p));
        }
        p.group = p.num_q_heads / p.num_kv_heads;
        if (Status s = check_dtypes(kv.k, kv.v, a.q.dtype); !s) return s;
        if (Status s = check_kv_scales(a.kv_scales, p.batch, p.num_kv_heads, contents_of(p)); !s) {
          return s;
        }
        p.k_scales = head_scales(a.kv_scales.k_per_head, a.kv_scales.k);
        p.v_scales = head_scales(a.kv_scales.v_per_head, a.kv_scales.v);
        return check_lengths_of(kv, p);
      },
      a.kv);
}

Status check_leftpad(const Attention& a, core::Problem& p) {
  if (a.leftpad_kv.empty()) return {};
  if (Status s = check_lengths("leftpad_kv", a.leftpad_kv, p.batch, 0, INT32_MAX,
                               "the largest length", contents_of(p));
      !s) {
    return s;
  }
  p.leftpad_kv = core::elements(a.leftpad_kv);
  if (!p.has_host_lengths) return {};
  for (int32_t b = 0; b < p.batch; ++b) {
    if (p.seqlen_kv(b) >= 0) continue;
    return complain(element_name("leftpad_kv", b), int64_t{p.leftpad(b)},
                    "must be at most the used rows of K and V of the sequence, " +
                        std::to_string(p.used_rows_kv(b)));
  }
  return {};
}

Status check_cache_lengths(const Attention& a, core::Problem& p) {
  p.cache_lengths = core::elements(a.cache_lengths);
  if (a.cache_lengths.empty()) return {};
  // The position of the last query must fit in 32 bits, too.
  return check_lengths("cache_lengths", a.cache_lengths, p.batch, -int64_t{p.max_seqlen_q},
                       int64_t{INT32_MAX} - p.max_seqlen_q, "2147483647 - the longest seqlen_q",
                       contents_of(p));
}

namespace {

// The largest number of keys that the shapes allow a sequence.
int64_t most_keys(const core::Problem& p) {
  switch (p.kv_kind) {
    case core::KVKind::kDense: return p.max_seqlen_kv;
    case core::KVKind::kRagged: return p.total_kv;
    case core::KVKind::kPaged: break;
  }
  if (p.num_pages == 0) return 0;
  const int64_t pages = p.block_table.data != nullptr ? p.block_table.columns
                                                      : static_cast<int64_t>(p.csr.indices.size());
  return pages * p.page_size;
}

// Whether every sequence has as many keys as the shape allows.
bool are_rows_full(const core::Problem& p) { return !p.is_ragged && p.seqlens_q_valid.empty(); }
bool are_keys_full(const core::Problem& p) {
  return p.kv_kind == core::KVKind::kDense && p.seqlens_kv.empty();
}

// Sets `bound` to the caller's maximum, or to what is known without it.
Status check_maximum(const char* name, int32_t given, int32_t known, bool is_known_exact,
                     int32_t& bound) {
  if (given < 0) return complain(name, int64_t{given}, "must be at least 0; 0 = not given");
  if (given != 0 && given < known && is_known_exact) {
    return complain(name, int64_t{given},
                    "must be 0 or at least the longest sequence, " + std::to_string(known));
  }
  bound = given == 0 || (!is_known_exact && given > known) ? known : given;
  return {};
}

}  // namespace

Status check_maxima(const Attention& a, core::Problem& p) {
  const bool is_host = p.has_host_lengths;
  int32_t rows = p.max_seqlen_q;
  auto keys = static_cast<int32_t>(std::min<int64_t>(most_keys(p), INT32_MAX));
  if (is_host && p.batch == 0) rows = keys = 0;
  if (is_host && p.batch > 0) {
    rows = keys = 0;
    for (int32_t b = 0; b < p.batch; ++b) {
      rows = std::max(rows, p.is_ragged ? p.num_rows(b) : p.seqlen_q(b));
      keys = std::max(keys, p.seqlen_kv(b));
    }
  }
  if (Status s = check_maximum("max_seqlen_q", a.max_seqlen_q, rows, is_host || are_rows_full(p),
                               p.max_seqlen_q_bound);
      !s) {
    return s;
  }
  // For a ragged Q in GPU memory the bound is the only length that the host knows.
  if (!is_host && p.is_ragged) p.max_seqlen_q = p.max_seqlen_q_bound;
  return check_maximum("max_seqlen_kv", a.max_seqlen_kv, keys, is_host || are_keys_full(p),
                       p.max_seqlen_kv_bound);
}

Status check_page_ids(const core::Problem& p, int64_t num_pages) {
  const bool is_csr = p.block_table.data == nullptr;
  for (int32_t b = 0; b < p.batch; ++b) {
    if (p.seqlen_kv(b) == 0) continue;
    const auto count = core::ceil_div<int64_t>(p.used_rows_kv(b), p.page_size);
    for (int64_t i = p.leftpad(b) / p.page_size; i < count; ++i) {
      const int64_t page = p.page(b, i);
      if (page >= 0 && page < num_pages) continue;
      const int64_t entry =
          is_csr ? p.csr.indptr[static_cast<size_t>(b)] + i : b * p.block_table.row_stride + i;
      return complain(element_name(is_csr ? "kv.table.indices" : "kv.table.pages", entry), page,
                      "must be in [0, num_pages = " + std::to_string(num_pages) + ")");
    }
  }
  return {};
}

}  // namespace pagoda::engine
