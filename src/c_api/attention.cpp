// One function per struct, its fields in the order of pagoda.h.
#include "c_api/attention.hpp"

#include <string>
#include <type_traits>

#include "c_api/masks.hpp"
#include "c_api/structs.hpp"
#include "c_api/tensors.hpp"
#include "engine/check.hpp"

namespace pagoda::c_api {
namespace {

using engine::complain;

template <typename AnyTensor>
Status to_required(std::string_view name, const pagoda_tensor* from, AnyTensor& to,
                   ElementTypes allowed = ElementTypes::kAll) {
  return from == nullptr ? complain_null(name) : to_tensor(name, from, to, allowed);
}

// An empty array counts as absent in C++. In C it is given, so it must have elements: one per
// sequence, unless there is none.
Status to_lengths(std::string_view name, const pagoda_tensor* from, int64_t batch,
                  ArrayView<int32_t>& to) {
  return to_array(name, from, to, batch == 0 ? 0 : 1);
}

Status to_layout(std::string_view name, pagoda_page_layout from, PageLayout& to) {
  if (from != PAGODA_NHD && from != PAGODA_HND) {
    return complain(name, int64_t{from}, "must be PAGODA_NHD or PAGODA_HND");
  }
  to = from == PAGODA_NHD ? PageLayout::kNHD : PageLayout::kHND;
  return {};
}

Status to_log_base(pagoda_log_base from, LogBase& to) {
  if (from != PAGODA_LOG_E && from != PAGODA_LOG_2) {
    return complain("lse_base", int64_t{from}, "must be PAGODA_LOG_E or PAGODA_LOG_2");
  }
  to = from == PAGODA_LOG_E ? LogBase::kE : LogBase::k2;
  return {};
}

Status to_scales(const pagoda_kv_scales* from, KVScales& to) {
  pagoda_kv_scales scales;
  if (Status s = read_optional("kv_scales", from, scales); !s) return s;
  if (scales.k != 0.0F) to.k = scales.k;
  if (scales.v != 0.0F) to.v = scales.v;
  if (Status s = to_tensor("kv_scales.k_per_head", scales.k_per_head, to.k_per_head,
                           ElementTypes::kFloat32);
      !s)
    return s;
  return to_tensor("kv_scales.v_per_head", scales.v_per_head, to.v_per_head,
                   ElementTypes::kFloat32);
}

// The arrays that decide the kind of a cache, first the one that does. Each kind excludes those of
// the others.
Status complain_ambiguous(const char* field, const char* decides) {
  return complain(field, "given", std::string("must be null: ") + decides + " is given");
}

Status to_block_table(const pagoda_kv_cache& kv, int64_t batch, BlockTable& to) {
  if (Status s = to_matrix("kv.block_table", *kv.block_table, to.pages); !s) return s;
  return to_lengths("kv.seqlens_kv", kv.seqlens_kv, batch, to.seqlens_kv);
}

Status to_csr(const pagoda_kv_cache& kv, CsrPages& to) {
  if (Status s = to_array("kv.indptr", kv.indptr, to.indptr, 1); !s) return s;
  if (Status s = to_array("kv.indices", kv.indices, to.indices, 0); !s) return s;
  return to_array("kv.last_page_len", kv.last_page_len, to.last_page_len, 0);
}

Status check_kind(const pagoda_kv_cache& kv) {
  if (kv.cu_seqlens_kv != nullptr) {
    if (kv.block_table != nullptr) return complain_ambiguous("kv.block_table", "kv.cu_seqlens_kv");
    if (kv.indptr != nullptr) return complain_ambiguous("kv.indptr", "kv.cu_seqlens_kv");
  }
  if (kv.indptr != nullptr) {
    if (kv.block_table != nullptr) return complain_ambiguous("kv.block_table", "kv.indptr");
    if (kv.seqlens_kv != nullptr) return complain_ambiguous("kv.seqlens_kv", "kv.indptr");
    return {};
  }
  if (kv.indices != nullptr) return complain("kv.indptr", "null", "kv.indices needs it");
  if (kv.last_page_len != nullptr)
    return complain("kv.indptr", "null", "kv.last_page_len needs it");
  return {};
}

Status to_cache(const pagoda_kv_cache* from, int64_t batch, KVCache& to) {
  pagoda_kv_cache kv;
  if (Status s = read_struct("kv", from, kv); !s) return s;
  if (Status s = check_kind(kv); !s) return s;
  ConstTensor k, v;
  if (Status s = to_required("kv.k", kv.k, k); !s) return s;
  if (Status s = to_required("kv.v", kv.v, v); !s) return s;
  PageLayout layout{};
  if (Status s = to_layout("kv.layout", kv.layout, layout); !s) return s;
  if (kv.block_table != nullptr) {
    BlockTable table;
    if (Status s = to_block_table(kv, batch, table); !s) return s;
    to = PagedKV{.k = k, .v = v, .layout = layout, .table = table, .page_size = kv.page_size};
    return {};
  }
  if (kv.indptr != nullptr) {
    CsrPages table;
    if (Status s = to_csr(kv, table); !s) return s;
    to = PagedKV{.k = k, .v = v, .layout = layout, .table = table, .page_size = kv.page_size};
    return {};
  }
  if (layout != PageLayout::kNHD) {
    return complain("kv.layout", int64_t{kv.layout}, "must be PAGODA_NHD: the cache has no pages");
  }
  if (kv.page_size != 0) {
    return complain("kv.page_size", int64_t{kv.page_size}, "must be 0: the cache has no pages");
  }
  if (kv.cu_seqlens_kv != nullptr) {
    RaggedKV ragged{.k = k, .v = v};
    if (Status s = to_array("kv.cu_seqlens_kv", kv.cu_seqlens_kv, ragged.cu_seqlens_kv, 1); !s) {
      return s;
    }
    if (Status s = to_lengths("kv.seqlens_kv", kv.seqlens_kv, batch, ragged.seqlens_kv); !s) {
      return s;
    }
    to = ragged;
    return {};
  }
  DenseKV dense{.k = k, .v = v};
  if (Status s = to_lengths("kv.seqlens_kv", kv.seqlens_kv, batch, dense.seqlens_kv); !s) return s;
  to = dense;
  return {};
}

static_assert(std::is_same_v<pagoda_score_functor, ScoreFunctor>);

Status to_score_mod(const pagoda_score_mod* from, ScoreMod& to) {
  pagoda_score_mod mod;
  if (Status s = read_optional("score_mod", from, mod); !s) return s;
  if (Status s = check_reserved("score_mod", mod.reserved); !s) return s;
  to.softcap = mod.softcap;
  to.functor = mod.functor;
  to.context = mod.context;
  return to_array("score_mod.alibi_slopes", mod.alibi_slopes, to.alibi_slopes, 1);
}

}  // namespace

Status to_attention(const pagoda_attention* from, Attention& to) {
  pagoda_attention a;
  if (Status s = read_struct("attention", from, a); !s) return s;
  if (Status s = to_required("q", a.q, to.q); !s) return s;
  if (Status s = to_array("cu_seqlens_q", a.cu_seqlens_q, to.cu_seqlens_q, 1); !s) return s;
  const int64_t batch =
      a.cu_seqlens_q != nullptr ? static_cast<int64_t>(to.cu_seqlens_q.size()) - 1 : to.q.shape[0];
  if (Status s = to_lengths("seqlens_q", a.seqlens_q, batch, to.seqlens_q); !s) return s;
  if (Status s = to_cache(a.kv, batch, to.kv); !s) return s;
  if (Status s = to_scales(a.kv_scales, to.kv_scales); !s) return s;
  if (Status s = to_lengths("cache_lengths", a.cache_lengths, batch, to.cache_lengths); !s) {
    return s;
  }
  to.max_seqlen_q = a.max_seqlen_q;
  to.max_seqlen_kv = a.max_seqlen_kv;
  if (a.softmax_scale != 0.0F) to.softmax_scale = a.softmax_scale;
  if (a.q_scale != 0.0F) to.q_scale = a.q_scale;
  if (a.out_scale != 0.0F) to.out_scale = a.out_scale;
  if (Status s = to_mask(a.mask, to.mask); !s) return s;
  if (Status s = to_score_mod(a.score_mod, to.score_mod); !s) return s;
  if (Status s = to_array("sinks", a.sinks, to.sinks, 1); !s) return s;
  if (Status s = to_required("out", a.out, to.out); !s) return s;
  if (Status s = to_tensor("lse", a.lse, to.lse, ElementTypes::kFloat32); !s) return s;
  if (Status s = to_log_base(a.lse_base, to.lse_base); !s) return s;
  if (Status s = to_tensor("row_max", a.row_max, to.row_max, ElementTypes::kFloat32); !s) return s;
  if (Status s = to_lengths("leftpad_kv", a.leftpad_kv, batch, to.leftpad_kv); !s) return s;
  if (Status s = to_tensor("q_scale_per_head", a.q_scale_per_head, to.q_scale_per_head,
                           ElementTypes::kFloat32);
      !s) {
    return s;
  }
  if (Status s = check_reserved("attention", a.reserved); !s) return s;
  return to_bool("zero_padding_rows", a.zero_padding_rows, to.zero_padding_rows);
}

Status to_append_kv(const pagoda_append_kv_args* from, AppendKV& to) {
  pagoda_append_kv_args a;
  if (Status s = read_struct("append", from, a); !s) return s;
  if (Status s = check_reserved("append", a.reserved); !s) return s;
  if (Status s = to_required("k_new", a.k_new, to.k_new, ElementTypes::kNotFp8); !s) return s;
  if (Status s = to_required("v_new", a.v_new, to.v_new, ElementTypes::kNotFp8); !s) return s;
  if (Status s = to_array("slot_mapping", a.slot_mapping, to.slot_mapping, 0); !s) return s;
  if (Status s = to_required("k_cache", a.k_cache, to.k_cache); !s) return s;
  if (Status s = to_required("v_cache", a.v_cache, to.v_cache); !s) return s;
  if (Status s = to_layout("layout", a.layout, to.layout); !s) return s;
  return to_scales(a.kv_scales, to.kv_scales);
}

Status to_merge_states(const pagoda_merge_states_args* from, MergeStates& to) {
  pagoda_merge_states_args m;
  if (Status s = read_struct("merge", from, m); !s) return s;
  if (Status s = to_required("partial_out", m.partial_out, to.partial_out, ElementTypes::kNotFp8);
      !s)
    return s;
  if (Status s = to_required("partial_lse", m.partial_lse, to.partial_lse, ElementTypes::kFloat32);
      !s)
    return s;
  if (Status s = to_required("out", m.out, to.out, ElementTypes::kNotFp8); !s) return s;
  if (Status s = to_tensor("lse", m.lse, to.lse, ElementTypes::kFloat32); !s) return s;
  if (Status s = to_log_base(m.lse_base, to.lse_base); !s) return s;
  if (Status s = check_reserved("merge", m.reserved); !s) return s;
  const int64_t total_q = to.partial_out.shape[1];
  return to_array("row_mask", m.row_mask, to.row_mask, total_q == 0 ? 0 : 1);
}

}  // namespace pagoda::c_api
