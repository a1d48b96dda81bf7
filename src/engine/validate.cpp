// The order of validation, and the checks of queries, results and scores. validate_kv.cpp and
// validate_mask.cpp check caches and masks.
#include "engine/validate.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <utility>

#include "engine/placement.hpp"
#include "engine/select.hpp"
#include "engine/validate_steps.hpp"

namespace pagoda::engine {
namespace {

core::RowView row_view(const Tensor& t, bool is_ragged, bool has_head_dim) {
  if (!t.present()) return {};
  const auto row = static_cast<size_t>(is_ragged ? 0 : 1);
  const int64_t head_stride = t.strides[row + 1];
  // With one head the stride of the head dimension is unchecked, and unused; 1 replaces it.
  return {.data = t.data,
          .dtype = t.dtype,
          .sequence_stride = is_ragged ? 0 : t.strides[0],
          .row_stride = t.strides[row],
          .head_stride = has_head_dim || t.shape[row + 1] > 1 ? head_stride : 1};
}

Status check_row_statistic(std::string_view name, const Tensor& t, const Attention& a,
                           const core::Problem& p) {
  if (!t.present()) return {};
  const Extent heads{"num_q_heads", p.num_q_heads};
  const Extent total{"total_q", a.q.shape[0]}, batch{"batch", p.batch};
  const Extent rows{"seqlen_q", p.max_seqlen_q};
  if (Status s = p.is_ragged ? check_tensor(name, t, {total, heads}, LastDim::kAnyStride)
                             : check_tensor(name, t, {batch, rows, heads}, LastDim::kAnyStride);
      !s) {
    return s;
  }
  if (Status s = check_dtype(name, t, DType::kF32, ""); !s) return s;
  return check_written(name, t);
}

}  // namespace

Status check_head_dim(std::string_view name, const ConstTensor& tensor) {
  const int64_t dim = tensor.shape[static_cast<size_t>(tensor.rank - 1)];
  if (dim >= kMinHeadDim && dim <= kMaxHeadDim && dim % kHeadDimStep == 0) return {};
  return complain(element_name(std::string(name) + ".shape", tensor.rank - 1), dim,
                  "a head dimension must be a multiple of 8 in [8, 576]");
}

Status check_queries(const Attention& a, core::Problem& p) {
  p.is_ragged = !a.cu_seqlens_q.empty();
  if (Status s = check_address("cu_seqlens_q", a.cu_seqlens_q); !s) return s;
  const Extent heads{.name = "num_q_heads", .least = 1}, dim{.name = "head_dim_qk"};
  if (!a.q.present()) return complain("q.rank", int64_t{0}, "q is required");
  if (Status s = p.is_ragged ? check_tensor("q", a.q, {{"total_q"}, heads, dim})
                             : check_tensor("q", a.q, {{"batch"}, {"seqlen_q"}, heads, dim});
      !s) {
    return s;
  }
  if (Status s = check_head_dim("q", a.q); !s) return s;

  const auto head_axis = static_cast<size_t>(a.q.rank - 2);
  p.num_q_heads = static_cast<int32_t>(a.q.shape[head_axis]);
  p.head_dim_qk = static_cast<int32_t>(a.q.shape[head_axis + 1]);
  p.q = row_view({const_cast<void*>(a.q.data), a.q.dtype, a.q.rank, a.q.shape, a.q.strides},
                 p.is_ragged, true);
  p.cu_seqlens_q = core::elements(a.cu_seqlens_q);
  p.seqlens_q_valid = core::elements(a.seqlens_q);
  if (!p.is_ragged) {
    p.batch = static_cast<int32_t>(a.q.shape[0]);
    p.max_seqlen_q = static_cast<int32_t>(a.q.shape[1]);
    if (a.seqlens_q.empty()) return {};
    return check_lengths("seqlens_q", a.seqlens_q, p.batch, 0, p.max_seqlen_q, "seqlen_q",
                         contents_of(p));
  }
  const int64_t batch = a.cu_seqlens_q.size() - 1;
  if (batch > INT32_MAX) {
    return complain("cu_seqlens_q.size()", batch + 1, "batch must be at most 2147483647");
  }
  p.batch = static_cast<int32_t>(batch);
  p.total_q = a.q.shape[0];
  if (Status s = check_offsets("cu_seqlens_q", a.cu_seqlens_q, batch, p.total_q, "total_q",
                               contents_of(p));
      !s) {
    return s;
  }
  if (!p.has_host_lengths) {
    p.max_seqlen_q = static_cast<int32_t>(p.total_q);
    return check_used("seqlens_q", a.seqlens_q, a.cu_seqlens_q, contents_of(p));
  }
  if (p.cu_seqlens_q.back() != p.total_q && !a.zero_padding_rows) {
    return complain(element_name("cu_seqlens_q", batch), int64_t{p.cu_seqlens_q.back()},
                    "must equal total_q = q.shape[0] = " + std::to_string(p.total_q) +
                        ", or be at most that with zero_padding_rows");
  }
  for (int32_t b = 0; b < p.batch; ++b) p.max_seqlen_q = std::max(p.max_seqlen_q, p.num_rows(b));
  return check_used("seqlens_q", a.seqlens_q, a.cu_seqlens_q, contents_of(p));
}

Status check_log_base(std::string_view name, LogBase base) {
  if (base == LogBase::kE || base == LogBase::k2) return {};
  return complain(name, static_cast<int64_t>(base), "must be one of LogBase's values");
}

Status check_results(const Attention& a, core::Problem& p) {
  if (!a.out.present()) return complain("out.rank", int64_t{0}, "out is required");
  const Extent heads{"num_q_heads", p.num_q_heads}, dim{"head_dim_vo", p.head_dim_vo};
  const Extent total{"total_q", a.q.shape[0]}, batch{"batch", p.batch};
  const Extent rows{"seqlen_q", p.max_seqlen_q};
  if (Status s = p.is_ragged ? check_tensor("out", a.out, {total, heads, dim})
                             : check_tensor("out", a.out, {batch, rows, heads, dim});
      !s) {
    return s;
  }
  // Kernels multiply with the reciprocal.
  if (!std::isfinite(a.out_scale) || a.out_scale <= 0 || !std::isfinite(1 / a.out_scale)) {
    return complain("out_scale", double{a.out_scale},
                    "must be finite and above 0, and so must be its reciprocal");
  }
  if (a.out.dtype != DType::kF8E4M3 && a.out_scale != 1.0F) {
    return complain("out_scale", double{a.out_scale},
                    "must be 1: only an fp8_e4m3 out has a scale");
  }
  if (Status s = check_written("out", a.out); !s) return s;
  if (Status s = check_row_statistic("lse", a.lse, a, p); !s) return s;
  if (Status s = check_row_statistic("row_max", a.row_max, a, p); !s) return s;
  p.out = row_view(a.out, p.is_ragged, true);
  p.out_scale = a.out_scale;
  p.zero_padding_rows = a.zero_padding_rows && p.is_ragged;
  p.lse = row_view(a.lse, p.is_ragged, false);
  p.row_max = row_view(a.row_max, p.is_ragged, false);
  if (Status s = check_log_base("lse_base", a.lse_base); !s) return s;
  p.lse_factor = a.lse_base == LogBase::k2 ? std::numbers::log2e_v<float> : 1.0F;
  return {};
}

Status check_q_scales(const Attention& a, core::Problem& p) {
  if (!std::isfinite(a.q_scale) || a.q_scale <= 0) {
    return complain("q_scale", double{a.q_scale}, "must be finite and above 0");
  }
  const bool has_scales = p.q.dtype == DType::kF8E4M3;
  if (a.q_scale != 1.0F && !has_scales) {
    return complain("q_scale", double{a.q_scale}, "must be 1: only fp8_e4m3 queries have a scale");
  }
  const ConstTensor& per_head = a.q_scale_per_head;
  if (!per_head.present()) {
    p.softmax_scale *= a.q_scale;
    return {};
  }
  if (!has_scales) {
    return complain("q_scale_per_head.rank", int64_t{per_head.rank},
                    "must be 0 (absent): only fp8_e4m3 queries have scales");
  }
  const bool has_rank = per_head.rank == 1 || per_head.rank == 2;
  const auto last = static_cast<size_t>(has_rank ? per_head.rank - 1 : 0);
  const bool is_of_groups = has_rank && per_head.shape[last] == p.num_kv_heads;
  const Extent heads = is_of_groups ? Extent{"num_kv_heads", p.num_kv_heads}
                                    : Extent{"num_q_heads (or num_kv_heads)", p.num_q_heads};
  if (Status s = check_head_scales("q_scale_per_head", per_head, p.batch, heads, contents_of(p));
      !s) {
    return s;
  }
  p.q_scales = head_scales(per_head, 1.0F);
  p.q_scales.group = is_of_groups ? p.group : 1;
  return {};
}

Status check_scores(const Attention& a, core::Problem& p) {
  p.softmax_scale = a.softmax_scale.value_or(1.0F / std::sqrt(static_cast<float>(p.head_dim_qk)));
  if (!std::isfinite(p.softmax_scale) || p.softmax_scale <= 0) {
    return complain("softmax_scale", double{p.softmax_scale}, "must be finite and above 0");
  }
  if (Status s = check_q_scales(a, p); !s) return s;
  // Kernels apply the K scale of an fp8 cache; that of others is one more factor of scores.
  if (p.k.dtype != DType::kF8E4M3) p.softmax_scale *= std::exchange(p.k_scales.shared, 1.0F);
  if (!std::isfinite(p.softmax_scale) || p.softmax_scale <= 0) {
    return complain("softmax_scale", double{p.softmax_scale},
                    "must be finite and above 0, times q_scale and kv_scales.k");
  }
  const float softcap = a.score_mod.softcap;
  if (!std::isfinite(softcap) || softcap < 0) {
    return complain("score_mod.softcap", double{softcap}, "must be 0 (off) or finite and above 0");
  }
  if (Status s = check_numbers("score_mod.alibi_slopes", a.score_mod.alibi_slopes, p.num_q_heads,
                               "num_q_heads", false, contents_of(p));
      !s) {
    return s;
  }
  p.score_mod = a.score_mod;
  p.sinks = core::elements(a.sinks);
  return check_numbers("sinks", a.sinks, p.num_q_heads, "num_q_heads", false, contents_of(p));
}

Result<core::Problem> validate_for(const core::Backend& backend, const Attention& attention,
                                   bool checks_indices) {
  static constexpr std::array kSteps{check_queries, check_cache,         check_leftpad,
                                     check_maxima,  check_cache_lengths, check_results,
                                     check_scores,  check_mask,          check_functor};
  if (Status s = check_placement(backend, attention); !s) return s;
  Result<core::Problem> result{core::Problem{}};
  core::Problem& problem = *result;
  problem.device = attention.q.device;
  problem.has_host_lengths = backend.memory == DeviceType::kCpu;
  for (const auto step : kSteps) {
    if (Status s = step(attention, problem); !s) return s;
  }
  if (Status s = check_outputs_apart(attention); !s) return s;
  if (problem.zero_padding_rows && backend.zero_padding_rows == nullptr) {
    return Status::unsupported("zero_padding_rows", "back end " + std::string(backend.name) +
                                                        " does not support zero_padding_rows");
  }
  if (checks_indices && problem.kv_kind == core::KVKind::kPaged && problem.has_host_lengths) {
    if (Status s = check_page_ids(problem, problem.num_pages); !s) return s;
  }
  if (checks_indices && problem.has_host_lengths) {
    if (Status s = check_functor_ranges(problem); !s) return s;
  }
  if (checks_indices) {
    if (Status s = check_pointers(backend, attention); !s) return s;
  }
  return result;
}

Result<core::Problem> validate(const Attention& attention, const Options& options) {
  const Result<const core::Backend*> backend = check_options(options, attention.q.device);
  if (!backend) return backend.status();
  return validate_for(**backend, attention, options.checks_indices);
}

}  // namespace pagoda::engine
