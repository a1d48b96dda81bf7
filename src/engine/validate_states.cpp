// Checks the arguments of append_kv() and merge_states().
#include <algorithm>
#include <vector>

#include "engine/placement.hpp"
#include "engine/validate.hpp"
#include "engine/validate_steps.hpp"

namespace pagoda::engine {
namespace {

Status check_not_fp8(std::string_view name, const ConstTensor& tensor) {
  if (tensor.dtype != DType::kF8E4M3) return {};
  return complain(std::string(name) + ".dtype", pagoda::name(tensor.dtype),
                  "must be fp32, fp16 or bf16");
}

Status check_new_rows(const AppendKV& a) {
  if (Status s =
          check_tensor("k_new", a.k_new,
                       {{"num_tokens"}, {.name = "num_kv_heads", .least = 1}, {"head_dim_qk"}});
      !s) {
    return s;
  }
  if (Status s = check_head_dim("k_new", a.k_new); !s) return s;
  if (Status s = check_not_fp8("k_new", a.k_new); !s) return s;
  if (Status s = check_tensor(
          "v_new", a.v_new,
          {{"num_tokens", a.k_new.shape[0]}, {"num_kv_heads", a.k_new.shape[1]}, {"head_dim_vo"}});
      !s) {
    return s;
  }
  if (Status s = check_head_dim("v_new", a.v_new); !s) return s;
  return check_dtype("v_new", a.v_new, a.k_new.dtype, ", the dtype of k_new");
}

Status check_cache_side(std::string_view name, const Tensor& cache, Extent pages, Extent rows,
                        Extent heads, Extent dim, PageLayout layout) {
  if (Status s = layout == PageLayout::kNHD ? check_tensor(name, cache, {pages, rows, heads, dim})
                                            : check_tensor(name, cache, {pages, heads, rows, dim});
      !s) {
    return s;
  }
  return check_written(name, cache);
}

Status check_caches(const AppendKV& a) {
  if (a.layout != PageLayout::kNHD && a.layout != PageLayout::kHND) {
    return complain("layout", static_cast<int64_t>(a.layout), "must be kNHD or kHND");
  }
  const Extent heads{"num_kv_heads", a.k_new.shape[1]};
  if (Status s =
          check_cache_side("k_cache", a.k_cache, {"num_pages"}, {.name = "page_size", .least = 1},
                           heads, {"head_dim_qk", a.k_new.shape[2]}, a.layout);
      !s) {
    return s;
  }
  const int64_t page_size = a.k_cache.shape[a.layout == PageLayout::kNHD ? 1 : 2];
  if (Status s = check_cache_side("v_cache", a.v_cache, {"num_pages", a.k_cache.shape[0]},
                                  {"page_size", page_size}, heads,
                                  {"head_dim_vo", a.v_new.shape[2]}, a.layout);
      !s) {
    return s;
  }
  if (Status s = check_dtype("v_cache", a.v_cache, a.k_cache.dtype, ", the dtype of k_cache"); !s) {
    return s;
  }
  return {};
}

Status check_caches_apart(const AppendKV& a) {
  const std::pair<const char*, ByteView> read[] = {
      {"k_new", bytes_of(a.k_new)},
      {"v_new", bytes_of(a.v_new)},
      {"slot_mapping", bytes_of(a.slot_mapping)},
      {"kv_scales.k_per_head", bytes_of(a.kv_scales.k_per_head)},
      {"kv_scales.v_per_head", bytes_of(a.kv_scales.v_per_head)}};
  const ByteView k_cache = bytes_of(a.k_cache), v_cache = bytes_of(a.v_cache);
  for (const auto& [name, bytes] : read) {
    if (Status s = check_apart("k_cache", k_cache, name, bytes); !s) return s;
    if (Status s = check_apart("v_cache", v_cache, name, bytes); !s) return s;
  }
  return check_apart("v_cache", v_cache, "k_cache", k_cache);
}

Status check_scales_are_used(const AppendKV& a) {
  if (a.k_cache.dtype == DType::kF8E4M3) return {};
  constexpr const char* kLimit = "only an fp8_e4m3 cache has scales";
  const KVScales& scales = a.kv_scales;
  for (const auto& [name, scale] :
       {std::pair("kv_scales.k", scales.k), {"kv_scales.v", scales.v}}) {
    if (scale != 1.0F) return complain(name, double{scale}, std::string("must be 1: ") + kLimit);
  }
  for (const auto& [name, values] : {std::pair("kv_scales.k_per_head", scales.k_per_head),
                                     {"kv_scales.v_per_head", scales.v_per_head}}) {
    if (!values.present()) continue;
    return complain(std::string(name) + ".rank", int64_t{values.rank},
                    std::string("must be 0 (absent): ") + kLimit);
  }
  return {};
}

Status check_slots(const AppendKV& a, bool checks_indices, Contents contents) {
  const int64_t size = a.slot_mapping.size();
  if (size != a.k_new.shape[0]) {
    return complain("slot_mapping.size()", size,
                    "must equal num_tokens = " + std::to_string(a.k_new.shape[0]));
  }
  if (Status s = check_address("slot_mapping", a.slot_mapping); !s) return s;
  if (contents == Contents::kUnread) return {};
  const std::span<const int64_t> slots = core::host_elements(a.slot_mapping);
  const int64_t page_size = a.k_cache.shape[a.layout == PageLayout::kNHD ? 1 : 2];
  const int64_t num_slots = a.k_cache.shape[0] * page_size;
  for (int64_t i = 0; i < size; ++i) {
    const int64_t slot = slots[static_cast<size_t>(i)];
    if (slot >= num_slots) {
      return complain(element_name("slot_mapping", i), slot,
                      "must be below num_pages * page_size = " + std::to_string(num_slots));
    }
  }
  if (!checks_indices) return {};
  std::vector<int64_t> sorted(slots.begin(), slots.end());
  std::sort(sorted.begin(), sorted.end());
  const auto used = std::lower_bound(sorted.begin(), sorted.end(), 0);
  const auto twice = std::adjacent_find(used, sorted.end());
  if (twice == sorted.end()) return {};
  return complain("slot_mapping", *twice, "two tokens must not be written to one slot");
}

Status check_merge(const MergeStates& m) {
  const Extent parts{.name = "num_parts", .least = 1};
  if (Status s = check_tensor("partial_out", m.partial_out,
                              {parts,
                               {"total_q"},
                               {.name = "num_q_heads", .least = 1},
                               {.name = "head_dim_vo", .least = 1}});
      !s) {
    return s;
  }
  if (Status s = check_not_fp8("partial_out", m.partial_out); !s) return s;
  const auto& shape = m.partial_out.shape;
  const Extent rows{"total_q", shape[1]}, heads{"num_q_heads", shape[2]};
  if (Status s = check_tensor("partial_lse", m.partial_lse, {{"num_parts", shape[0]}, rows, heads},
                              LastDim::kAnyStride);
      !s) {
    return s;
  }
  if (Status s = check_dtype("partial_lse", m.partial_lse, DType::kF32, ""); !s) return s;
  if (Status s = check_tensor("out", m.out, {rows, heads, {"head_dim_vo", shape[3]}}); !s) return s;
  if (Status s = check_not_fp8("out", m.out); !s) return s;
  if (Status s = check_written("out", m.out); !s) return s;
  if (Status s = check_apart_or_inside("out", m.out, "partial_out", m.partial_out); !s) return s;
  if (Status s = check_apart("out", m.out, "partial_lse", m.partial_lse); !s) return s;
  if (Status s = check_log_base("lse_base", m.lse_base); !s) return s;
  if (!m.row_mask.empty() && m.row_mask.size() != shape[1]) {
    return complain("row_mask.size()", m.row_mask.size(),
                    "must be 0 or total_q = " + std::to_string(shape[1]));
  }
  if (Status s = check_address("row_mask", m.row_mask); !s) return s;
  const ByteView row_mask = bytes_of(m.row_mask);
  if (Status s = check_apart("out", bytes_of(m.out), "row_mask", row_mask); !s) return s;
  if (!m.lse.present()) return {};
  if (Status s = check_tensor("lse", m.lse, {rows, heads}, LastDim::kAnyStride); !s) return s;
  if (Status s = check_dtype("lse", m.lse, DType::kF32, ""); !s) return s;
  if (Status s = check_written("lse", m.lse); !s) return s;
  if (Status s = check_apart("lse", bytes_of(m.lse), "row_mask", row_mask); !s) return s;
  if (Status s = check_apart("lse", m.lse, "out", m.out); !s) return s;
  if (Status s = check_apart("lse", m.lse, "partial_out", m.partial_out); !s) return s;
  return check_apart_or_inside("lse", m.lse, "partial_lse", m.partial_lse);
}

}  // namespace

Status validate(const core::Backend& backend, const AppendKV& append, const Options& options) {
  const Contents contents =
      backend.memory == DeviceType::kCpu ? Contents::kRead : Contents::kUnread;
  if (Status s = check_placement(backend, append); !s) return s;
  if (Status s = check_new_rows(append); !s) return s;
  if (Status s = check_caches(append); !s) return s;
  if (Status s = check_kv_scales(append.kv_scales, -1, append.k_new.shape[1], contents); !s)
    return s;
  if (Status s = check_scales_are_used(append); !s) return s;
  if (Status s = check_slots(append, options.checks_indices, contents); !s) return s;
  if (Status s = check_caches_apart(append); !s) return s;
  return options.checks_indices ? check_pointers(backend, append) : Status{};
}

Status validate(const core::Backend& backend, const MergeStates& m, const Options& options) {
  if (Status s = check_placement(backend, m); !s) return s;
  if (Status s = check_merge(m); !s) return s;
  return options.checks_indices ? check_pointers(backend, m) : Status{};
}

}  // namespace pagoda::engine
