// Bad k and v: dense, ragged and paged; dtypes and scales.
#include <cmath>

#include "bad_call.hpp"

namespace pagoda::test {

std::span<const BadCall> bad_caches() {
  static constexpr BadCall kRows[] = {
      {"k_absent", Base::kDense, [](ValidCall& c) { c.dense().k = {}; }, "kv.k.rank",
       "kv.k is required"},
      {"v_absent", Base::kBlockTable, [](ValidCall& c) { c.paged().v = {}; }, "kv.v.rank",
       "kv.v is required"},
      {"dense_k_of_rank_3", Base::kDense, [](ValidCall& c) { c.dense().k.rank = 3; }, "kv.k.rank",
       "must be 4 [batch, max_seqlen_kv, num_kv_heads, head_dim_qk]"},
      {"ragged_k_of_rank_4", Base::kRagged, [](ValidCall& c) { c.ragged().k.rank = 4; },
       "kv.k.rank", "must be 3 [total_kv, num_kv_heads, head_dim_qk]"},
      {"paged_k_of_rank_5", Base::kBlockTable, [](ValidCall& c) { c.paged().k.rank = 5; },
       "kv.k.rank", "must be 4 [num_pages, page_size, num_kv_heads, head_dim_qk]"},
      {"hnd_k_of_rank_3", Base::kCsr, [](ValidCall& c) { c.paged().k.rank = 3; }, "kv.k.rank",
       "must be 4 [num_pages, num_kv_heads, page_size, head_dim_qk]"},
      {"dense_k_of_another_batch", Base::kDense, [](ValidCall& c) { c.dense().k.shape[0] = 3; },
       "kv.k.shape[0]", "must equal batch = 2"},
      {"k_head_dim_differs_from_q", Base::kDense, [](ValidCall& c) { c.dense().k.shape[3] = 8; },
       "kv.k.shape[3]", "must equal head_dim_qk = 16"},
      {"ragged_k_head_dim_differs_from_q", Base::kRagged,
       [](ValidCall& c) { c.ragged().k.shape[2] = 8; }, "kv.k.shape[2]",
       "must equal head_dim_qk = 16"},
      {"v_head_dim_4", Base::kDense, [](ValidCall& c) { c.dense().v.shape[3] = 4; },
       "kv.v.shape[3]", "multiple of 8 in [8, 576]"},
      {"v_head_dim_600", Base::kRagged, [](ValidCall& c) { c.ragged().v.shape[2] = 600; },
       "kv.v.shape[2]", "multiple of 8 in [8, 576]"},
      {"heads_not_a_multiple", Base::kDense,
       [](ValidCall& c) { c.dense().k.shape[2] = c.dense().v.shape[2] = 3; }, "q.shape[2]",
       "num_q_heads must be a multiple of num_kv_heads = 3"},
      {"more_key_heads_than_query_heads", Base::kRagged,
       [](ValidCall& c) { c.ragged().k.shape[1] = c.ragged().v.shape[1] = 8; }, "q.shape[1]",
       "num_q_heads must be a multiple of num_kv_heads = 8"},
      {"no_key_heads", Base::kDense, [](ValidCall& c) { c.dense().k.shape[2] = 0; },
       "kv.k.shape[2]", "num_kv_heads must be at least 1"},
      {"v_of_fewer_heads", Base::kDense, [](ValidCall& c) { c.dense().v.shape[2] = 1; },
       "kv.v.shape[2]", "must equal num_kv_heads = 2"},
      {"v_of_fewer_keys", Base::kDense, [](ValidCall& c) { c.dense().v.shape[1] = 9; },
       "kv.v.shape[1]", "must equal max_seqlen_kv = 10"},
      {"v_of_fewer_total_keys", Base::kRagged, [](ValidCall& c) { c.ragged().v.shape[0] = 16; },
       "kv.v.shape[0]", "must equal total_kv = 17"},
      {"v_of_fewer_pages", Base::kBlockTable, [](ValidCall& c) { c.paged().v.shape[0] = 5; },
       "kv.v.shape[0]", "must equal num_pages = 6"},
      {"v_of_another_page_size", Base::kCsr, [](ValidCall& c) { c.paged().v.shape[2] = 2; },
       "kv.v.shape[2]", "must equal page_size = 4"},
      {"page_size_0", Base::kBlockTable, [](ValidCall& c) { c.paged().k.shape[1] = 0; },
       "kv.k.shape[1]", "page_size must be at least 1"},
      {"pages_negative", Base::kBlockTable, [](ValidCall& c) { c.paged().k.shape[0] = -1; },
       "kv.k.shape[0]", "num_pages must be at least 0"},
      {"unknown_layout", Base::kCsr, [](ValidCall& c) { c.paged().layout = PageLayout{9}; },
       "kv.layout", "must be kNHD or kHND"},
      {"k_null", Base::kBlockTable, [](ValidCall& c) { c.paged().k.data = nullptr; }, "kv.k.data",
       "must not be null"},
      {"v_null", Base::kRagged, [](ValidCall& c) { c.ragged().v.data = nullptr; }, "kv.v.data",
       "must not be null"},
      {"k_misaligned", Base::kCsr,
       [](ValidCall& c) { c.paged().k.data = static_cast<const std::byte*>(c.paged().k.data) + 1; },
       "kv.k.data", "multiple of the element size, 2"},
      {"v_on_a_gpu", Base::kFp8, [](ValidCall& c) { c.paged().v.device.type = DeviceType::kCuda; },
       "kv.v.device", "cuda"},
      {"k_last_stride_16", Base::kBlockTable, [](ValidCall& c) { c.paged().k.strides[3] = 16; },
       "kv.k.strides[3]", "contiguous"},
      {"v_page_stride_overflows", Base::kBlockTable,
       [](ValidCall& c) { c.paged().v.strides[0] = INT64_MIN; }, "kv.v.strides", "63 bits"},

      {"fp16_cache_under_fp32", Base::kDense,
       [](ValidCall& c) { c.dense().k.dtype = c.dense().v.dtype = DType::kF16; }, "kv.k.dtype",
       "must be fp32, the dtype of q"},
      {"fp8_cache_under_fp32", Base::kBlockTable,
       [](ValidCall& c) { c.paged().k.dtype = c.paged().v.dtype = DType::kF8E4M3; }, "kv.k.dtype",
       "must be fp32, the dtype of q"},
      {"bf16_cache_under_fp16", Base::kCsr,
       [](ValidCall& c) { c.paged().k.dtype = c.paged().v.dtype = DType::kBF16; }, "kv.k.dtype",
       "must be fp16, the dtype of q, or fp8_e4m3"},
      {"bf16_cache_under_fp8", Base::kFp8,
       [](ValidCall& c) {
         c.a.q.dtype = DType::kF8E4M3;
         c.paged().k.dtype = c.paged().v.dtype = DType::kBF16;
       },
       "kv.k.dtype", "must be fp8_e4m3, the dtype of q"},
      {"v_of_another_dtype_than_k", Base::kFp8,
       [](ValidCall& c) { c.paged().v.dtype = DType::kBF16; }, "kv.v.dtype",
       "must be fp8_e4m3, the dtype of kv.k"},

      {"k_scale_0", Base::kFp8, [](ValidCall& c) { c.a.kv_scales.k = 0; }, "kv_scales.k",
       "finite and above 0"},
      {"v_scale_nan", Base::kFp8, [](ValidCall& c) { c.a.kv_scales.v = NAN; }, "kv_scales.v",
       "finite and above 0"},
      {"k_scale_that_overflows", Base::kDense, [](ValidCall& c) { c.a.kv_scales.k = 1e-45F; },
       "softmax_scale", "times q_scale and kv_scales.k"},
      {"pages_hnd_read_as_nhd", Base::kBlockTable, [](ValidCall& c) { c.paged().page_size = 2; },
       "kv.page_size", "layout NHD reads 4 from kv.k.shape; with layout HND they would agree"},
      {"heads_of_the_other_layout", Base::kBlockTable,
       [](ValidCall& c) {
         for (ConstTensor* t : {&c.paged().k, &c.paged().v}) {
           t->shape[1] = 2;
           t->shape[2] = 8;
         }
       },
       "q.shape[1]", "kv.layout is NHD, with HND it is 2"},
      {"page_size_of_no_layout", Base::kCsr, [](ValidCall& c) { c.paged().page_size = 64; },
       "kv.page_size", "layout HND reads 4 from kv.k.shape"},
      {"per_head_scales_too_many", Base::kFp8,
       [](ValidCall& c) {
         c.floats = {1, 1, 1, 1};
         c.a.kv_scales.k_per_head = c.floats_of({4});
       },
       "kv_scales.k_per_head.shape[0]", "must equal num_kv_heads = 2"},
      {"scales_of_another_batch", Base::kFp8,
       [](ValidCall& c) {
         c.floats = {1, 1, 1, 1, 1, 1};
         c.a.kv_scales.v_per_head = c.floats_of({3, 2});
       },
       "kv_scales.v_per_head.shape[0]", "must equal batch = 2"},
      {"scales_of_rank_3", Base::kFp8,
       [](ValidCall& c) {
         c.floats = {1, 1, 1, 1};
         c.a.kv_scales.k_per_head = c.floats_of({2, 2, 1});
       },
       "kv_scales.k_per_head.rank", "must be 1 [num_kv_heads], or 2 [batch, num_kv_heads]"},
      {"scales_of_fp16", Base::kFp8,
       [](ValidCall& c) {
         c.floats = {1, 1};
         c.a.kv_scales.k_per_head = c.floats_of({2});
         c.a.kv_scales.k_per_head.dtype = DType::kF16;
       },
       "kv_scales.k_per_head.dtype", "must be fp32"},
      {"scales_without_memory", Base::kDense,
       [](ValidCall& c) { c.a.kv_scales.k_per_head = c.floats_of({2}); },
       "kv_scales.k_per_head.data", "must not be null"},
      {"scale_of_a_sequence_0", Base::kDense,
       [](ValidCall& c) {
         c.floats = {1, 1, 0, 1};
         c.a.kv_scales.k_per_head = c.floats_of({2, 2});
       },
       "kv_scales.k_per_head[1][0]", "finite and above 0"},
      {"leftpad_too_few", Base::kBlockTable,
       [](ValidCall& c) {
         c.ints = {0};
         c.a.leftpad_kv = c.ints;
       },
       "leftpad_kv.size()", "must equal batch = 2"},
      {"leftpad_negative", Base::kDense,
       [](ValidCall& c) {
         c.ints = {0, -1};
         c.a.leftpad_kv = c.ints;
       },
       "leftpad_kv[1]", "is -1"},
      {"leftpad_past_the_used_rows", Base::kBlockTable,
       [](ValidCall& c) {
         c.ints = {10, 8};
         c.a.leftpad_kv = c.ints;
       },
       "leftpad_kv[1]", "must be at most the used rows of K and V of the sequence, 7"},
      {"leftpad_past_the_last_page", Base::kCsr,
       [](ValidCall& c) {
         c.ints = {11, 0};
         c.a.leftpad_kv = c.ints;
       },
       "leftpad_kv[0]", "the sequence, 10"},
      {"leftpad_past_the_offsets", Base::kRagged,
       [](ValidCall& c) {
         c.ints = {0, INT32_MAX};
         c.a.leftpad_kv = c.ints;
       },
       "leftpad_kv[1]", "the sequence, 7"},
      {"leftpad_on_a_gpu", Base::kRagged,
       [](ValidCall& c) {
         c.ints = {0, 0};
         c.a.leftpad_kv = {c.ints.data(), 2, {DeviceType::kCuda, 0}};
       },
       "leftpad_kv.device", "host memory"},
      {"per_head_scale_infinite", Base::kFp8,
       [](ValidCall& c) {
         c.floats = {1, INFINITY};
         c.a.kv_scales.v_per_head = c.floats_of({2});
       },
       "kv_scales.v_per_head[1]", "finite and above 0"},
      {"per_head_scale_negative", Base::kFp8,
       [](ValidCall& c) {
         c.floats = {-1, 1};
         c.a.kv_scales.k_per_head = c.floats_of({2});
       },
       "kv_scales.k_per_head[0]", "is -1"},
  };
  return kRows;
}

}  // namespace pagoda::test
