// Bad append_kv() and merge_states() calls: rejected, field named, nothing written.
#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <vector>

#include "pagoda/pagoda.hpp"

namespace pagoda::test {
namespace {

constexpr std::byte kPoison{0xa5};

bool is_untouched(const std::vector<std::byte>& memory) {
  return std::all_of(memory.begin(), memory.end(), [](std::byte b) { return b == kPoison; });
}

const std::byte* bytes_of(const ConstTensor& t) { return static_cast<const std::byte*>(t.data); }

// Three tokens of 2 heads into 4 pages of 5 rows.
struct Append {
  Append() {
    k_new.resize(3 * 2 * 16);
    v_new.resize(3 * 2 * 8);
    call.k_new = ConstTensor::contiguous(k_new.data(), DType::kF32, {3, 2, 16});
    call.v_new = ConstTensor::contiguous(v_new.data(), DType::kF32, {3, 2, 8});
    call.slot_mapping = slots;
    call.k_cache = Tensor::contiguous(k_cache.data(), DType::kF8E4M3, {4, 5, 2, 16});
    call.v_cache = Tensor::contiguous(v_cache.data(), DType::kF8E4M3, {4, 5, 2, 8});
  }
  Options options{.backend = "reference", .checks_indices = true};
  std::vector<float> k_new, v_new, floats;
  std::vector<int64_t> slots{3, -1, 19};
  std::vector<std::byte> k_cache = std::vector<std::byte>(4 * 5 * 2 * 16 * 4, kPoison);
  std::vector<std::byte> v_cache = std::vector<std::byte>(4 * 5 * 2 * 8 * 4, kPoison);
  AppendKV call;
};

template <typename Call>
struct BadRow {
  const char* name;
  void (*spoil)(Call& call);
  const char* field;
  const char* fragment;
  StatusCode code = StatusCode::kInvalidArgument;
};

constexpr BadRow<Append> kBadAppends[] = {
    {"k_new_absent", [](Append& a) { a.call.k_new = {}; }, "k_new.rank", "must be 3 [num_tokens"},
    {"k_new_null", [](Append& a) { a.call.k_new.data = nullptr; }, "k_new.data",
     "must not be null"},
    {"k_new_without_heads", [](Append& a) { a.call.k_new.shape[1] = 0; }, "k_new.shape[1]",
     "num_kv_heads must be at least 1"},
    {"k_new_head_dim_20", [](Append& a) { a.call.k_new.shape[2] = 20; }, "k_new.shape[2]",
     "multiple of 8"},
    {"k_new_fp8", [](Append& a) { a.call.k_new.dtype = DType::kF8E4M3; }, "k_new.dtype",
     "must be fp32, fp16 or bf16"},
    {"k_new_misaligned", [](Append& a) { a.call.k_new.data = bytes_of(a.call.k_new) + 1; },
     "k_new.data", "multiple of the element size, 4"},
    {"v_new_of_fewer_tokens", [](Append& a) { a.call.v_new.shape[0] = 2; }, "v_new.shape[0]",
     "must equal num_tokens = 3"},
    {"v_new_of_fewer_heads", [](Append& a) { a.call.v_new.shape[1] = 1; }, "v_new.shape[1]",
     "must equal num_kv_heads = 2"},
    {"v_new_head_dim_0", [](Append& a) { a.call.v_new.shape[2] = 0; }, "v_new.shape[2]",
     "multiple of 8"},
    {"v_new_of_another_dtype", [](Append& a) { a.call.v_new.dtype = DType::kF16; }, "v_new.dtype",
     "must be fp32, the dtype of k_new"},
    {"v_new_not_contiguous", [](Append& a) { a.call.v_new.strides[2] = 3; }, "v_new.strides[2]",
     "contiguous"},
    {"layout_unknown", [](Append& a) { a.call.layout = PageLayout{3}; }, "layout", "kNHD or kHND"},
    {"layout_of_the_other_kind", [](Append& a) { a.call.layout = PageLayout::kHND; },
     "k_cache.shape[1]", "must equal num_kv_heads = 2"},
    {"k_cache_absent", [](Append& a) { a.call.k_cache = {}; }, "k_cache.rank",
     "must be 4 [num_pages, page_size, num_kv_heads, head_dim_qk]"},
    {"k_cache_page_size_0", [](Append& a) { a.call.k_cache.shape[1] = 0; }, "k_cache.shape[1]",
     "page_size must be at least 1"},
    {"k_cache_head_dim_differs", [](Append& a) { a.call.k_cache.shape[3] = 8; }, "k_cache.shape[3]",
     "must equal head_dim_qk = 16"},
    {"k_cache_rows_overlap", [](Append& a) { a.call.k_cache.strides[1] = 16; },
     "k_cache.strides[1]", "must not overlap"},
    {"k_cache_on_a_gpu", [](Append& a) { a.call.k_cache.device.type = DeviceType::kCuda; },
     "k_cache.device", "host memory"},
    {"v_cache_of_fewer_pages", [](Append& a) { a.call.v_cache.shape[0] = 3; }, "v_cache.shape[0]",
     "must equal num_pages = 4"},
    {"v_cache_of_another_page_size", [](Append& a) { a.call.v_cache.shape[1] = 4; },
     "v_cache.shape[1]", "must equal page_size = 5"},
    {"v_cache_of_another_dtype", [](Append& a) { a.call.v_cache.dtype = DType::kBF16; },
     "v_cache.dtype", "must be fp8_e4m3, the dtype of k_cache"},
    {"v_cache_pages_overlap", [](Append& a) { a.call.v_cache.strides[0] = 1; },
     "v_cache.strides[0]", "must not overlap"},
    {"v_cache_is_k_cache", [](Append& a) { a.call.v_cache.data = a.call.k_cache.data; },
     "v_cache.data", "inside k_cache"},
    {"k_cache_is_k_new", [](Append& a) { a.call.k_cache.data = a.k_new.data(); }, "k_cache.data",
     "inside k_new"},
    {"v_cache_is_v_new", [](Append& a) { a.call.v_cache.data = a.v_new.data(); }, "v_cache.data",
     "inside v_new"},
    {"v_cache_2_columns_inside_k_cache",
     [](Append& a) {
       a.call.v_cache.data = a.k_cache.data() + 14;  // of rows of 24, 16 of which are K's
       a.call.k_cache.strides = a.call.v_cache.strides = {5 * 2 * 24, 2 * 24, 24, 1};
     },
     "v_cache.data", "inside k_cache"},
    {"k_cache_over_slots",
     [](Append& a) {
       a.slots.assign(4 * 5 * 2 * 16 / 8, -1);
       a.call.slot_mapping = {a.slots.data() + 7, 3};
       a.call.k_cache.data = a.slots.data();
     },
     "k_cache.data", "inside slot_mapping"},
    {"v_cache_over_scales",
     [](Append& a) {
       a.floats.assign(4 * 5 * 2 * 8 / 4, 1);
       a.call.v_cache.data = a.floats.data();
       a.call.kv_scales.k_per_head = ConstTensor::contiguous(a.floats.data(), DType::kF32, {2});
     },
     "v_cache.data", "inside kv_scales.k_per_head"},
    {"slots_too_few", [](Append& a) { a.call.slot_mapping = a.call.slot_mapping.first(2); },
     "slot_mapping.size()", "must equal num_tokens = 3"},
    {"slot_past_the_end", [](Append& a) { a.slots[2] = 20; }, "slot_mapping[2]",
     "must be below num_pages * page_size = 20"},
    {"slot_far_past_the_end", [](Append& a) { a.slots[0] = INT64_MAX; }, "slot_mapping[0]",
     "must be below"},
    {"slot_used_twice", [](Append& a) { a.slots[2] = 3; }, "slot_mapping",
     "two tokens must not be written to one slot"},
    {"scale_0", [](Append& a) { a.call.kv_scales.v = 0; }, "kv_scales.v", "finite and above 0"},
    {"scale_on_fp16",
     [](Append& a) {
       a.call.k_cache.dtype = a.call.v_cache.dtype = DType::kF16;
       a.call.kv_scales.k = 0.5F;
     },
     "kv_scales.k", "only an fp8_e4m3 cache has scales"},
    {"scale_per_head_too_few",
     [](Append& a) {
       a.floats = {1};
       a.call.kv_scales.k_per_head = ConstTensor::contiguous(a.floats.data(), DType::kF32, {1});
     },
     "kv_scales.k_per_head.shape[0]", "must equal num_kv_heads = 2"},
    {"scale_by_sequence",
     [](Append& a) {
       a.floats = {1, 1};
       a.call.kv_scales.v_per_head = ConstTensor::contiguous(a.floats.data(), DType::kF32, {1, 2});
     },
     "kv_scales.v_per_head.rank", "must be 1 [num_kv_heads]"},
    {"backend_unknown", [](Append& a) { a.options.backend = "gpu"; }, "backend", "\"gpu\"",
     StatusCode::kNotFound},
};

// Two parts of 3 rows with 2 heads of 8.
struct Merge {
  Merge() {
    partial_out.resize(2 * 3 * 2 * 8);
    partial_lse.resize(2 * 3 * 2);
    call.partial_out = ConstTensor::contiguous(partial_out.data(), DType::kF32, {2, 3, 2, 8});
    call.partial_lse = ConstTensor::contiguous(partial_lse.data(), DType::kF32, {2, 3, 2});
    call.out = Tensor::contiguous(out.data(), DType::kF32, {3, 2, 8});
    call.lse = Tensor::contiguous(lse.data(), DType::kF32, {3, 2});
  }
  Options options{.backend = "reference"};
  std::vector<float> partial_out, partial_lse;
  std::vector<std::byte> out = std::vector<std::byte>(3 * 2 * 8 * 4, kPoison);
  std::vector<std::byte> lse = std::vector<std::byte>(3 * 2 * 4, kPoison);
  MergeStates call;
};

constexpr BadRow<Merge> kBadMerges[] = {
    {"partial_out_absent", [](Merge& m) { m.call.partial_out = {}; }, "partial_out.rank",
     "must be 4 [num_parts, total_q, num_q_heads, head_dim_vo]"},
    {"no_parts", [](Merge& m) { m.call.partial_out.shape[0] = 0; }, "partial_out.shape[0]",
     "num_parts must be at least 1"},
    {"no_heads", [](Merge& m) { m.call.partial_out.shape[2] = 0; }, "partial_out.shape[2]",
     "num_q_heads must be at least 1"},
    {"no_columns", [](Merge& m) { m.call.partial_out.shape[3] = 0; }, "partial_out.shape[3]",
     "head_dim_vo must be at least 1"},
    {"partial_out_fp8", [](Merge& m) { m.call.partial_out.dtype = DType::kF8E4M3; },
     "partial_out.dtype", "must be fp32, fp16 or bf16"},
    {"partial_lse_of_fewer_parts", [](Merge& m) { m.call.partial_lse.shape[0] = 1; },
     "partial_lse.shape[0]", "must equal num_parts = 2"},
    {"partial_lse_of_fewer_rows", [](Merge& m) { m.call.partial_lse.shape[1] = 2; },
     "partial_lse.shape[1]", "must equal total_q = 3"},
    {"partial_lse_fp16", [](Merge& m) { m.call.partial_lse.dtype = DType::kF16; },
     "partial_lse.dtype", "must be fp32"},
    {"partial_lse_null", [](Merge& m) { m.call.partial_lse.data = nullptr; }, "partial_lse.data",
     "must not be null"},
    {"out_absent", [](Merge& m) { m.call.out = {}; }, "out.rank",
     "must be 3 [total_q, num_q_heads, head_dim_vo]"},
    {"out_of_more_rows", [](Merge& m) { m.call.out.shape[0] = 4; }, "out.shape[0]",
     "must equal total_q = 3"},
    {"out_of_fewer_columns", [](Merge& m) { m.call.out.shape[2] = 7; }, "out.shape[2]",
     "must equal head_dim_vo = 8"},
    {"out_fp8", [](Merge& m) { m.call.out.dtype = DType::kF8E4M3; }, "out.dtype",
     "must be fp32, fp16 or bf16"},
    {"out_rows_overlap", [](Merge& m) { m.call.out.strides[0] = 8; }, "out.strides[0]",
     "must not overlap"},
    {"out_is_a_part_of_other_strides",
     [](Merge& m) {
       m.call.out.data = m.partial_out.data();
       m.call.out.strides = {8, 24, 1};
     },
     "out.data", "inside partial_out"},
    {"out_is_between_parts", [](Merge& m) { m.call.out.data = m.partial_out.data() + 8; },
     "out.data", "inside partial_out"},
    {"row_mask_too_short",
     [](Merge& m) {
       m.call.row_mask = {nullptr, 2};
     },
     "row_mask.size()", "must be 0 or total_q = 3"},
    {"row_mask_null",
     [](Merge& m) {
       m.call.row_mask = {nullptr, 3};
     },
     "row_mask.data", "must not be null"},
    {"out_over_the_row_mask",
     [](Merge& m) {
       m.call.row_mask = {reinterpret_cast<const uint8_t*>(m.out.data()) + 5, 3};
     },
     "out.data", "inside row_mask"},
    {"lse_over_the_row_mask",
     [](Merge& m) {
       m.call.row_mask = {reinterpret_cast<const uint8_t*>(m.lse.data()), 3};
     },
     "lse.data", "inside row_mask"},
    {"lse_base_unknown", [](Merge& m) { m.call.lse_base = static_cast<LogBase>(2); }, "lse_base",
     "must be one of LogBase's values"},
    {"out_is_the_lses", [](Merge& m) { m.call.out.data = m.partial_lse.data(); }, "out.data",
     "inside partial_lse"},
    {"lse_of_rank_3", [](Merge& m) { m.call.lse.rank = 3; }, "lse.rank",
     "must be 2 [total_q, num_q_heads]"},
    {"lse_bf16", [](Merge& m) { m.call.lse.dtype = DType::kBF16; }, "lse.dtype", "must be fp32"},
    {"lse_is_out", [](Merge& m) { m.call.lse.data = m.call.out.data; }, "lse.data", "inside out"},
    {"lse_is_a_part_of_other_strides",
     [](Merge& m) {
       m.call.lse.data = m.partial_lse.data();
       m.call.lse.strides = {1, 3};
     },
     "lse.data", "inside partial_lse"},
    {"lse_is_between_parts", [](Merge& m) { m.call.lse.data = m.partial_lse.data() + 4; },
     "lse.data", "inside partial_lse"},
    {"backend_unknown", [](Merge& m) { m.options.backend = "gpu"; }, "backend", "this library has",
     StatusCode::kNotFound},
};

template <typename Call>
void expect_complaint(const Status& status, const BadRow<Call>& bad) {
  EXPECT_EQ(status.code(), bad.code) << status.message();
  EXPECT_EQ(status.field(), bad.field) << status.message();
  EXPECT_NE(status.message().find(bad.fragment), std::string::npos) << status.message();
}

TEST(BadAppends, are_rejected_with_their_field_named_and_nothing_written) {
  for (const auto& bad : kBadAppends) {
    SCOPED_TRACE(bad.name);
    Append append;
    bad.spoil(append);
    expect_complaint(append_kv(append.call, append.options), bad);
    EXPECT_TRUE(is_untouched(append.k_cache));
    EXPECT_TRUE(is_untouched(append.v_cache));
  }
  Append valid;
  EXPECT_TRUE(append_kv(valid.call, valid.options));
  EXPECT_FALSE(is_untouched(valid.k_cache));
  EXPECT_FALSE(is_untouched(valid.v_cache));
}

TEST(BadMerges, are_rejected_with_their_field_named_and_nothing_written) {
  for (const auto& bad : kBadMerges) {
    SCOPED_TRACE(bad.name);
    Merge merge;
    bad.spoil(merge);
    expect_complaint(merge_states(merge.call, merge.options), bad);
    EXPECT_TRUE(is_untouched(merge.out));
    EXPECT_TRUE(is_untouched(merge.lse));
  }
  Merge valid;
  EXPECT_TRUE(merge_states(valid.call, valid.options));
  EXPECT_FALSE(is_untouched(valid.out));
  EXPECT_FALSE(is_untouched(valid.lse));
}

}  // namespace
}  // namespace pagoda::test
