// Bad out, lse and row_max.
#include "bad_call.hpp"

namespace pagoda::test {

std::span<const BadCall> bad_outputs() {
  static constexpr BadCall kRows[] = {
      {"out_absent", Base::kDense, [](ValidCall& c) { c.a.out = {}; }, "out.rank",
       "out is required"},
      {"out_null", Base::kDense, [](ValidCall& c) { c.a.out.data = nullptr; }, "out.data",
       "must not be null"},
      {"out_of_rank_3", Base::kDense, [](ValidCall& c) { c.a.out.rank = 3; }, "out.rank",
       "must be 4 [batch, seqlen_q, num_q_heads, head_dim_vo]"},
      {"out_of_fewer_rows", Base::kRagged, [](ValidCall& c) { c.a.out.shape[0] = 4; },
       "out.shape[0]", "must equal total_q = 5"},
      {"out_of_another_batch", Base::kDense, [](ValidCall& c) { c.a.out.shape[0] = 1; },
       "out.shape[0]", "must equal batch = 2"},
      {"out_of_fewer_heads", Base::kDense, [](ValidCall& c) { c.a.out.shape[2] = 2; },
       "out.shape[2]", "must equal num_q_heads = 4"},
      {"out_of_q_head_dim", Base::kDense, [](ValidCall& c) { c.a.out.shape[3] = 16; },
       "out.shape[3]", "must equal head_dim_vo = 8"},
      {"out_of_no_dtype", Base::kDense,
       [](ValidCall& c) { c.a.out.dtype = static_cast<DType>(99); }, "out.dtype",
       "must be one of DType's values"},
      {"out_scale_0", Base::kDense,
       [](ValidCall& c) {
         c.a.out.dtype = DType::kF8E4M3;
         c.a.out_scale = 0;
       },
       "out_scale", "must be finite and above 0"},
      {"out_scale_without_reciprocal", Base::kDense,
       [](ValidCall& c) {
         c.a.out.dtype = DType::kF8E4M3;
         c.a.out_scale = 1e-39F;
       },
       "out_scale", "and so must be its reciprocal"},
      {"out_scale_of_16_bits", Base::kDense,
       [](ValidCall& c) {
         c.a.out.dtype = DType::kBF16;
         c.a.out_scale = 2;
       },
       "out_scale", "only an fp8_e4m3 out has a scale"},
      {"out_on_a_gpu", Base::kDense, [](ValidCall& c) { c.a.out.device.type = DeviceType::kCuda; },
       "out.device", "host memory"},
      {"out_rows_all_the_same", Base::kDense, [](ValidCall& c) { c.a.out.strides[1] = 0; },
       "out.strides[1]", "must not overlap"},
      {"out_heads_overlap", Base::kRagged, [](ValidCall& c) { c.a.out.strides[1] = 7; },
       "out.strides[1]", "at least 8 in magnitude"},
      {"out_sequences_overlap", Base::kDense, [](ValidCall& c) { c.a.out.strides[0] = 95; },
       "out.strides[0]", "at least 96 in magnitude"},
      {"out_is_k", Base::kDense,
       [](ValidCall& c) { c.a.out.data = const_cast<void*>(c.dense().k.data); }, "out.data",
       "inside kv.k"},
      {"out_is_v", Base::kBlockTable,
       [](ValidCall& c) { c.a.out.data = const_cast<void*>(c.paged().v.data); }, "out.data",
       "inside kv.v"},
      {"out_is_q", Base::kRagged,
       [](ValidCall& c) { c.a.out.data = const_cast<void*>(c.a.q.data); }, "out.data", "inside q"},
      {"out_inside_q", Base::kDense,
       [](ValidCall& c) { c.a.out.data = static_cast<float*>(const_cast<void*>(c.a.q.data)) + 4; },
       "out.data", "inside q"},
      {"out_8_columns_before_the_gaps_of_q", Base::kDense,
       [](ValidCall& c) {
         c.floats.resize(2 * 3 * 4 * 24);
         c.a.q.data = c.floats.data();
         c.a.out.data = c.floats.data() + 8;
         c.a.q.strides = c.a.out.strides = {3 * 4 * 24, 4 * 24, 24, 1};
       },
       "out.data", "inside q"},
      {"out_a_token_further_in_q", Base::kDense,
       [](ValidCall& c) {
         c.floats.resize(3 * 3 * 4 * 24);
         c.a.q.data = c.floats.data();
         c.a.out.data = c.floats.data() + 4 * 24;
         c.a.q.strides = c.a.out.strides = {3 * 4 * 24, 4 * 24, 24, 1};
       },
       "out.data", "inside q"},
      {"out_over_sinks", Base::kDense,
       [](ValidCall& c) {
         c.floats.resize(2 * 3 * 4 * 8);
         c.a.out.data = c.floats.data();
         c.a.sinks = {c.floats.data() + 100, 4};
       },
       "out.data", "inside sinks"},
      {"out_over_an_additive_mask", Base::kDense,
       [](ValidCall& c) {
         c.floats.resize(2 * 3 * 4 * 8);
         c.a.out.data = c.floats.data();
         c.a.mask = Mask::causal() & Mask::additive(c.floats_of({2, 3, 10}));
       },
       "out.data", "inside mask.nodes[1].tensor"},
      {"out_over_scales", Base::kFp8,
       [](ValidCall& c) {
         c.floats.assign(5 * 4 * 8, 1);
         c.a.out.data = c.floats.data();
         c.a.kv_scales.v_per_head = c.floats_of({2});
       },
       "out.data", "inside kv_scales.v_per_head"},
      {"lse_over_alibi_slopes", Base::kDense,
       [](ValidCall& c) {
         c.floats.resize(2 * 3 * 4);
         c.a.lse.data = c.floats.data();
         c.a.score_mod.alibi_slopes = {c.floats.data() + 20, 4};
       },
       "lse.data", "inside score_mod.alibi_slopes"},
      {"lse_over_a_bit_mask", Base::kDense,
       [](ValidCall& c) {
         c.words.resize(2 * 3 * 4);
         c.longs = {0, 3, 6};
         c.a.lse.data = c.words.data();
         c.a.mask = Mask::bits(c.words, c.longs);
       },
       "lse.data", "inside mask.nodes[0].words"},
      {"lse_over_a_block_table", Base::kBlockTable,
       [](ValidCall& c) {
         c.ints.resize(5 * 4);
         c.a.lse.data = c.ints.data();
         c.block_table().pages.data = c.ints.data() + 3;
       },
       "lse.data", "inside kv."},
      {"row_max_over_lengths", Base::kDense,
       [](ValidCall& c) {
         c.ints.resize(2 * 3 * 4);
         c.a.row_max.data = c.ints.data();
         c.dense().seqlens_kv = {c.ints.data() + 22, 2};
       },
       "row_max.data", "inside kv.seqlens_kv"},
      {"lse_of_another_dtype", Base::kCsr, [](ValidCall& c) { c.a.lse.dtype = DType::kF16; },
       "lse.dtype", "must be fp32"},
      {"lse_with_a_head_dim", Base::kDense, [](ValidCall& c) { c.a.lse.rank = 4; }, "lse.rank",
       "must be 3 [batch, seqlen_q, num_q_heads]"},
      {"lse_transposed", Base::kRagged,
       [](ValidCall& c) {
         c.a.lse.shape = {4, 5};
         c.a.lse.strides = {5, 1};
       },
       "lse.shape[0]", "must equal total_q = 5"},
      {"lse_rows_overlap", Base::kRagged, [](ValidCall& c) { c.a.lse.strides[0] = 3; },
       "lse.strides[0]", "at least 4 in magnitude"},
      {"lse_null", Base::kDense, [](ValidCall& c) { c.a.lse.data = nullptr; }, "lse.data",
       "must not be null"},
      {"lse_misaligned", Base::kDense,
       [](ValidCall& c) { c.a.lse.data = static_cast<std::byte*>(c.a.lse.data) + 3; }, "lse.data",
       "multiple of the element size, 4"},
      {"lse_is_out", Base::kDense, [](ValidCall& c) { c.a.lse.data = c.a.out.data; }, "lse.data",
       "inside out"},
      {"row_max_is_lse", Base::kDense, [](ValidCall& c) { c.a.row_max.data = c.a.lse.data; },
       "row_max.data", "inside lse"},
      {"row_max_of_fewer_heads", Base::kRagged, [](ValidCall& c) { c.a.row_max.shape[1] = 3; },
       "row_max.shape[1]", "must equal num_q_heads = 4"},
      {"row_max_of_another_dtype", Base::kDense,
       [](ValidCall& c) { c.a.row_max.dtype = DType::kBF16; }, "row_max.dtype", "must be fp32"},
      {"row_max_of_overlapping_heads", Base::kDense,
       [](ValidCall& c) { c.a.row_max.strides[2] = 0; }, "row_max.strides[2]", "must not overlap"},
      {"lse_base_unknown", Base::kDense,
       [](ValidCall& c) { c.a.lse_base = static_cast<LogBase>(7); }, "lse_base",
       "must be one of LogBase's values"},
  };
  return kRows;
}

}  // namespace pagoda::test
