// Bad q, offsets and lengths of queries.
#include <cmath>

#include "bad_call.hpp"

namespace pagoda::test {

std::span<const BadCall> bad_queries() {
  static constexpr BadCall kRows[] = {
      {"q_absent", Base::kDense, [](ValidCall& c) { c.a.q = {}; }, "q.rank", "q is required"},
      {"q_of_rank_3_without_offsets", Base::kRagged, [](ValidCall& c) { c.a.cu_seqlens_q = {}; },
       "q.rank", "must be 4 [batch, seqlen_q, num_q_heads, head_dim_qk]"},
      {"q_of_rank_4_with_offsets", Base::kDense,
       [](ValidCall& c) { c.a.cu_seqlens_q = c.cu_seqlens_q; }, "q.rank",
       "must be 3 [total_q, num_q_heads, head_dim_qk]"},
      {"q_of_rank_6", Base::kDense, [](ValidCall& c) { c.a.q.rank = 6; }, "q.rank", "is 6"},
      {"q_of_negative_rank", Base::kDense, [](ValidCall& c) { c.a.q.rank = -1; }, "q.rank",
       "is -1"},
      {"q_null", Base::kDense, [](ValidCall& c) { c.a.q.data = nullptr; }, "q.data",
       "must not be null"},
      {"q_misaligned", Base::kDense,
       [](ValidCall& c) { c.a.q.data = static_cast<const std::byte*>(c.a.q.data) + 2; }, "q.data",
       "multiple of the element size, 4"},
      {"q_on_a_gpu", Base::kDense, [](ValidCall& c) { c.a.q.device.type = DeviceType::kCuda; },
       "q.device", "host memory"},
      {"q_of_unknown_dtype", Base::kDense, [](ValidCall& c) { c.a.q.dtype = DType{77}; }, "q.dtype",
       "is 77"},
      {"q_batch_negative", Base::kDense, [](ValidCall& c) { c.a.q.shape[0] = -2; }, "q.shape[0]",
       "batch must be at least 0"},
      {"q_batch_beyond_32_bits", Base::kDense,
       [](ValidCall& c) { c.a.q.shape[0] = int64_t{1} << 31; }, "q.shape[0]",
       "batch must be at most 2147483647"},
      {"q_rows_negative", Base::kDense, [](ValidCall& c) { c.a.q.shape[1] = -1; }, "q.shape[1]",
       "seqlen_q must be at least 0"},
      {"q_total_beyond_32_bits", Base::kRagged,
       [](ValidCall& c) { c.a.q.shape[0] = int64_t{1} << 40; }, "q.shape[0]",
       "total_q must be at most 2147483647"},
      {"q_without_heads", Base::kDense, [](ValidCall& c) { c.a.q.shape[2] = 0; }, "q.shape[2]",
       "num_q_heads must be at least 1"},
      {"q_head_dim_0", Base::kDense, [](ValidCall& c) { c.a.q.shape[3] = 0; }, "q.shape[3]",
       "multiple of 8 in [8, 576]"},
      {"q_head_dim_12", Base::kDense, [](ValidCall& c) { c.a.q.shape[3] = 12; }, "q.shape[3]",
       "multiple of 8 in [8, 576]"},
      {"q_head_dim_584", Base::kRagged,
       [](ValidCall& c) {
         c.a.q.shape[2] = 584;
         c.a.q.strides[1] = 584;
       },
       "q.shape[2]", "multiple of 8 in [8, 576]"},
      {"q_last_stride_2", Base::kDense, [](ValidCall& c) { c.a.q.strides[3] = 2; }, "q.strides[3]",
       "contiguous"},
      {"q_last_stride_0", Base::kRagged, [](ValidCall& c) { c.a.q.strides[2] = 0; }, "q.strides[2]",
       "contiguous"},
      {"q_stride_overflows", Base::kDense, [](ValidCall& c) { c.a.q.strides[0] = INT64_MAX; },
       "q.strides", "63 bits"},
      {"q_stride_in_bytes_overflows", Base::kDense,
       [](ValidCall& c) { c.a.q.strides[0] = INT64_MAX / 3; }, "q.strides", "63 bits"},
      {"q_strides_overflow_together", Base::kDense,
       [](ValidCall& c) { c.a.q.strides[0] = c.a.q.strides[1] = INT64_MAX / 3; }, "q.strides",
       "63 bits"},
      {"q_stride_leaves_the_address_space", Base::kDense,
       [](ValidCall& c) { c.a.q.strides[0] = -(int64_t{1} << 60); }, "q.strides", "address space"},

      {"offsets_one_short", Base::kRagged,
       [](ValidCall& c) { c.a.cu_seqlens_q = c.a.cu_seqlens_q.first(2); }, "cu_seqlens_q[1]",
       "must equal total_q = q.shape[0] = 5"},
      {"offsets_start_at_1", Base::kRagged, [](ValidCall& c) { c.cu_seqlens_q[0] = 1; },
       "cu_seqlens_q[0]", "must start at 0"},
      {"offsets_decrease", Base::kRagged, [](ValidCall& c) { c.cu_seqlens_q[1] = 6; },
       "cu_seqlens_q[2]", "must not be below the entry before it, 6"},
      {"offsets_negative", Base::kRagged, [](ValidCall& c) { c.cu_seqlens_q[1] = -1; },
       "cu_seqlens_q[1]", "must not be below"},
      {"offsets_end_past_total_q", Base::kRagged, [](ValidCall& c) { c.cu_seqlens_q[2] = 6; },
       "cu_seqlens_q[2]", "total_q must be at most 5"},
      {"offsets_end_before_total_q", Base::kRagged, [](ValidCall& c) { c.cu_seqlens_q[2] = 4; },
       "cu_seqlens_q[2]", "or be at most that with zero_padding_rows"},
      {"used_rows_past_the_offsets", Base::kRagged,
       [](ValidCall& c) {
         c.ints = {3, 3};
         c.a.seqlens_q = c.ints;
       },
       "seqlens_q[1]", "must be at most the rows of the sequence, 2"},
      {"used_rows_of_one_sequence", Base::kRagged,
       [](ValidCall& c) {
         c.ints = {3};
         c.a.seqlens_q = c.ints;
       },
       "seqlens_q.size()", "must equal batch = 2"},
      {"q_scale_of_fp32", Base::kDense, [](ValidCall& c) { c.a.q_scale = 2; }, "q_scale",
       "only fp8_e4m3 queries have a scale"},
      {"q_scale_0", Base::kDense, [](ValidCall& c) { c.a.q_scale = 0; }, "q_scale",
       "finite and above 0"},
      {"q_scales_of_bf16", Base::kFp8,
       [](ValidCall& c) {
         c.floats = {1, 1, 1, 1};
         c.a.q_scale_per_head = c.floats_of({4});
       },
       "q_scale_per_head.rank", "only fp8_e4m3 queries have scales"},
      {"q_scales_of_no_heads", Base::kFp8,
       [](ValidCall& c) {
         c.a.q.dtype = DType::kF8E4M3;
         c.floats = {1, 1, 1};
         c.a.q_scale_per_head = c.floats_of({3});
       },
       "q_scale_per_head.shape[0]", "num_q_heads (or num_kv_heads) = 4"},
      {"q_scales_of_rank_4", Base::kFp8,
       [](ValidCall& c) {
         c.a.q.dtype = DType::kF8E4M3;
         c.a.q_scale_per_head.rank = 4;
       },
       "q_scale_per_head.rank", "must be 1"},
      {"q_scale_of_a_group_infinite", Base::kFp8,
       [](ValidCall& c) {
         c.a.q.dtype = DType::kF8E4M3;
         c.floats = {1, 1, 1, INFINITY};
         c.a.q_scale_per_head = c.floats_of({2, 2});
       },
       "q_scale_per_head[1][1]", "finite and above 0"},
      {"q_scales_of_another_batch", Base::kFp8,
       [](ValidCall& c) {
         c.a.q.dtype = DType::kF8E4M3;
         c.floats = {1, 1, 1, 1};
         c.a.q_scale_per_head = c.floats_of({1, 4});
       },
       "q_scale_per_head.shape[0]", "must equal batch = 2"},
      {"zeroed_rows_of_offsets_past_total_q", Base::kRagged,
       [](ValidCall& c) {
         c.cu_seqlens_q[2] = 6;
         c.a.zero_padding_rows = true;
       },
       "cu_seqlens_q[2]", "total_q must be at most 5"},
      {"lengths_too_few", Base::kDense,
       [](ValidCall& c) {
         c.ints = {3};
         c.a.seqlens_q = c.ints;
       },
       "seqlens_q.size()", "must equal batch = 2"},
      {"length_above_seqlen_q", Base::kDense,
       [](ValidCall& c) {
         c.ints = {3, 4};
         c.a.seqlens_q = c.ints;
       },
       "seqlens_q[1]", "must be in [0, seqlen_q = 3]"},
      {"length_negative", Base::kDense,
       [](ValidCall& c) {
         c.ints = {-1, 3};
         c.a.seqlens_q = c.ints;
       },
       "seqlens_q[0]", "is -1"},
      {"cache_lengths_too_few", Base::kDense,
       [](ValidCall& c) {
         c.ints = {7};
         c.a.cache_lengths = c.ints;
       },
       "cache_lengths.size()", "must equal batch = 2"},
      {"cache_length_negative", Base::kRagged,
       [](ValidCall& c) {
         c.ints = {7, -5};
         c.a.cache_lengths = c.ints;
       },
       "cache_lengths[1]", "is -5"},
      {"cache_length_pushes_positions_past_32_bits", Base::kRagged,
       [](ValidCall& c) {
         c.ints = {INT32_MAX - 2, 5};
         c.a.cache_lengths = c.ints;
       },
       "cache_lengths[0]", "2147483647 - the longest seqlen_q = 2147483644"},
      {"more_rows_than_promised", Base::kRagged, [](ValidCall& c) { c.a.max_seqlen_q = 2; },
       "max_seqlen_q", "is 2; must be 0 or at least the longest sequence, 3"},
      {"more_padded_rows_than_promised", Base::kDense,
       [](ValidCall& c) {
         c.ints = {2, 1};
         c.a.seqlens_q = c.ints;
         c.a.max_seqlen_q = 1;
       },
       "max_seqlen_q", "is 1; must be 0 or at least the longest sequence, 2"},
      {"more_keys_than_promised", Base::kBlockTable, [](ValidCall& c) { c.a.max_seqlen_kv = 9; },
       "max_seqlen_kv", "is 9; must be 0 or at least the longest sequence, 10"},
      {"negative_promise_of_rows", Base::kRagged, [](ValidCall& c) { c.a.max_seqlen_q = -1; },
       "max_seqlen_q", "is -1; must be at least 0"},
      {"negative_promise_of_keys", Base::kCsr, [](ValidCall& c) { c.a.max_seqlen_kv = -7; },
       "max_seqlen_kv", "is -7; must be at least 0"},
  };
  return kRows;
}

}  // namespace pagoda::test
