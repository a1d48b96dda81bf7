// The steps that validate an Attention, in order. Each checks a group of fields and fills its part
// of the Problem; later steps rely on the checks of earlier ones.
#pragma once

#include "core/problem.hpp"
#include "engine/check.hpp"
#include "pagoda/attention.hpp"

namespace pagoda::engine {

inline constexpr int64_t kMinHeadDim = 8;
inline constexpr int64_t kMaxHeadDim = 576;
inline constexpr int64_t kHeadDimStep = 8;

// The tensor field is named `name`; the head dimension is its last extent.
[[nodiscard]] Status check_head_dim(std::string_view name, const ConstTensor& tensor);
// Scales must be finite and above 0. Those per head are [heads], or [batch, heads] where batch >=
// 0.
[[nodiscard]] Status check_kv_scales(const KVScales& scales, int64_t batch, int64_t num_kv_heads,
                                     Contents contents);
[[nodiscard]] Status check_head_scales(std::string_view name, const ConstTensor& scales,
                                       int64_t batch, const Extent& heads, Contents contents);
// `per_head` is valid or absent.
[[nodiscard]] core::HeadScales head_scales(const ConstTensor& per_head, float shared);
[[nodiscard]] Status check_log_base(std::string_view name, LogBase base);

[[nodiscard]] inline Contents contents_of(const core::Problem& p) {
  return p.has_host_lengths ? Contents::kRead : Contents::kUnread;
}

[[nodiscard]] Status check_queries(const Attention& a, core::Problem& p);  // q, its lengths
[[nodiscard]] Status check_cache(const Attention& a, core::Problem& p);    // k, v, page tables
[[nodiscard]] Status check_leftpad(const Attention& a, core::Problem& p);
[[nodiscard]] Status check_maxima(const Attention& a,
                                  core::Problem& p);  // max_seqlen_*; sets the bounds
[[nodiscard]] Status check_cache_lengths(const Attention& a, core::Problem& p);
[[nodiscard]] Status check_results(const Attention& a, core::Problem& p);  // out, lse, row_max
[[nodiscard]] Status check_scores(const Attention& a, core::Problem& p);  // scale, sinks, score mod
[[nodiscard]] Status check_mask(const Attention& a, core::Problem& p);
[[nodiscard]] Status check_functor(const Attention& a, core::Problem& p);
[[nodiscard]] Status check_functor_ranges(const core::Problem& p);               // checked mode
[[nodiscard]] Status check_page_ids(const core::Problem& p, int64_t num_pages);  // checked mode

}  // namespace pagoda::engine
