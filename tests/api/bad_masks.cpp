// Bad masks, alone and below operators.
#include "bad_call.hpp"

namespace pagoda::test {
namespace {

// A valid additive mask of rank 4 for Base::kDense, which a test then makes invalid.
ConstTensor bias(ValidCall& c) {
  c.floats.resize(2 * 4 * 3 * 10);
  return ConstTensor::contiguous(c.floats.data(), DType::kF32, {2, 4, 3, 10});
}

void set_bits(ValidCall& c, std::vector<int64_t> offsets) {
  c.words.resize(6);
  c.longs = std::move(offsets);
  c.a.mask = Mask::bits({c.words.data(), 6}, c.longs);
}

}  // namespace

std::span<const BadCall> bad_masks() {
  static constexpr BadCall kRows[] = {
      {"chunk_0", Base::kDense, [](ValidCall& c) { c.a.mask = Mask::chunked(0); },
       "mask.nodes[0].chunk", "must be in [1, 2147483647]"},
      {"chunk_negative_below_and", Base::kDense,
       [](ValidCall& c) { c.a.mask = Mask::causal() & Mask::chunked(-4); }, "mask.nodes[1].chunk",
       "is -4"},
      {"chunk_beyond_32_bits", Base::kRagged,
       [](ValidCall& c) { c.a.mask = Mask::chunked(int64_t{1} << 31); }, "mask.nodes[0].chunk",
       "must be in [1, 2147483647]"},
      {"window_left_beyond_32_bits", Base::kDense,
       [](ValidCall& c) { c.a.mask = Mask::window(INT64_MAX, 0); }, "mask.nodes[0].left",
       "at most 2147483647"},
      {"window_right_beyond_32_bits", Base::kRagged,
       [](ValidCall& c) { c.a.mask = Mask::window(0, int64_t{1} << 32); }, "mask.nodes[0].right",
       "at most 2147483647"},
      {"padding_too_few", Base::kDense,
       [](ValidCall& c) {
         c.ints = {4};
         c.a.mask = Mask::padding(c.ints);
       },
       "mask.nodes[0].valid_lengths.size()", "must equal batch = 2"},
      {"padding_negative", Base::kRagged,
       [](ValidCall& c) {
         c.ints = {4, -4};
         c.a.mask = Mask::padding(c.ints);
       },
       "mask.nodes[0].valid_lengths[1]", "is -4"},

      {"additive_absent", Base::kDense, [](ValidCall& c) { c.a.mask = Mask::additive({}); },
       "mask.nodes[0].tensor.rank", "must be 3"},
      {"additive_of_rank_2", Base::kDense,
       [](ValidCall& c) {
         ConstTensor t = bias(c);
         t.rank = 2;
         c.a.mask = Mask::additive(t);
       },
       "mask.nodes[0].tensor.rank", "is 2"},
      {"additive_of_bf16", Base::kDense,
       [](ValidCall& c) {
         ConstTensor t = bias(c);
         t.dtype = DType::kBF16;
         c.a.mask = Mask::additive(t);
       },
       "mask.nodes[0].tensor.dtype", "must be fp32"},
      {"additive_of_too_few_rows", Base::kDense,
       [](ValidCall& c) {
         ConstTensor t = bias(c);
         t.shape[2] = 2;
         c.a.mask = Mask::additive(t);
       },
       "mask.nodes[0].tensor.shape[2]", "the longest seqlen_q must be at least 3"},
      {"additive_rows_do_not_broadcast", Base::kDense,
       [](ValidCall& c) {
         ConstTensor t = bias(c);
         t.shape[2] = 1;
         c.a.mask = Mask::additive(t);
       },
       "mask.nodes[0].tensor.shape[2]", "is 1"},
      {"additive_of_too_few_keys", Base::kDense,
       [](ValidCall& c) {
         ConstTensor t = bias(c);
         t.shape[3] = 9;
         c.a.mask = Mask::additive(t);
       },
       "mask.nodes[0].tensor.shape[3]", "the longest seqlen_kv must be at least 10"},
      {"additive_of_kv_heads", Base::kDense,
       [](ValidCall& c) {
         ConstTensor t = bias(c);
         t.shape[1] = 2;
         c.a.mask = Mask::additive(t);
       },
       "mask.nodes[0].tensor.shape[1]", "must equal num_q_heads = 4"},
      {"additive_of_another_batch", Base::kDense,
       [](ValidCall& c) {
         ConstTensor t = bias(c);
         t.shape[0] = 3;
         c.a.mask = Mask::causal() & Mask::additive(t);
       },
       "mask.nodes[1].tensor.shape[0]", "must equal batch = 2"},
      {"additive_null", Base::kDense,
       [](ValidCall& c) {
         ConstTensor t = bias(c);
         t.data = nullptr;
         c.a.mask = Mask::additive(t);
       },
       "mask.nodes[0].tensor.data", "must not be null"},
      {"additive_not_contiguous", Base::kDense,
       [](ValidCall& c) {
         ConstTensor t = bias(c);
         t.strides[3] = 0;
         c.a.mask = Mask::additive(t);
       },
       "mask.nodes[0].tensor.strides[3]", "contiguous"},

      {"relative_bias_of_even_width", Base::kDense,
       [](ValidCall& c) {
         c.floats.resize(32);
         c.a.mask =
             Mask::relative_bias(ConstTensor::contiguous(c.floats.data(), DType::kF32, {4, 8}));
       },
       "mask.nodes[0].tensor.shape[1]", "must be odd"},
      {"relative_bias_of_kv_heads", Base::kRagged,
       [](ValidCall& c) {
         c.floats.resize(14);
         c.a.mask =
             Mask::relative_bias(ConstTensor::contiguous(c.floats.data(), DType::kF32, {2, 7}));
       },
       "mask.nodes[0].tensor.shape[0]", "must equal num_q_heads = 4"},
      {"relative_bias_of_rank_1", Base::kDense,
       [](ValidCall& c) {
         c.floats.resize(7);
         c.a.mask = Mask::relative_bias(ConstTensor::contiguous(c.floats.data(), DType::kF32, {7}));
       },
       "mask.nodes[0].tensor.rank", "must be 2 [num_q_heads, 2 * extent + 1]"},
      {"relative_bias_of_fp16", Base::kDense,
       [](ValidCall& c) {
         c.floats.resize(28);
         c.a.mask =
             Mask::relative_bias(ConstTensor::contiguous(c.floats.data(), DType::kF16, {4, 7}));
       },
       "mask.nodes[0].tensor.dtype", "must be fp32"},

      {"bits_null", Base::kDense,
       [](ValidCall& c) {
         set_bits(c, {0, 3, 6});
         c.a.mask = Mask::bits({nullptr, 6}, c.longs);
       },
       "mask.nodes[0].words.data", "must not be null"},
      {"bits_negative_size", Base::kDense,
       [](ValidCall& c) {
         set_bits(c, {0, 3, 6});
         c.a.mask = Mask::bits({c.words.data(), -1}, c.longs);
       },
       "mask.nodes[0].words.size()", "at least 0"},
      {"bits_misaligned", Base::kDense,
       [](ValidCall& c) {
         set_bits(c, {0, 3, 6});
         const char* words = reinterpret_cast<const char*>(c.words.data()) + 2;
         c.a.mask = Mask::bits({reinterpret_cast<const uint32_t*>(words), 5}, c.longs);
       },
       "mask.nodes[0].words.data", "multiple of 4"},
      {"bits_offsets_too_few", Base::kDense,
       [](ValidCall& c) {
         set_bits(c, {0, 3});
       },
       "mask.nodes[0].row_offsets.size()", "must be batch + 1 = 3"},
      {"bits_rows_too_short", Base::kDense,
       [](ValidCall& c) {
         set_bits(c, {0, 2, 5});
       },
       "mask.nodes[0].row_offsets[1]", "must be at least 3: sequence 0 has"},
      {"bits_offset_past_the_words", Base::kDense,
       [](ValidCall& c) {
         set_bits(c, {0, 3, 7});
       },
       "mask.nodes[0].row_offsets[2]", "must be in [0, words.size() = 6]"},
      {"bits_offset_negative", Base::kDense,
       [](ValidCall& c) {
         set_bits(c, {-1, 3, 6});
       },
       "mask.nodes[0].row_offsets[0]", "is -1"},

      {"functor_null", Base::kDense, [](ValidCall& c) { c.a.mask = Mask::functor(nullptr); },
       "mask.nodes[0].functor", "must not be null"},
      {"or_over_additive", Base::kDense,
       [](ValidCall& c) { c.a.mask = Mask::causal() | Mask::additive(bias(c)); }, "mask.nodes[2]",
       "combined with AND only"},
      {"or_over_and_over_relative_bias", Base::kDense,
       [](ValidCall& c) {
         c.floats.resize(28);
         const Mask table =
             Mask::relative_bias(ConstTensor::contiguous(c.floats.data(), DType::kF32, {4, 7}));
         c.a.mask = (table & Mask::causal()) | Mask::window(2, 0);
       },
       "mask.nodes[4]", "combined with AND only"},
      {"too_many_nodes", Base::kDense,
       [](ValidCall& c) {
         c.a.mask = Mask::causal();
         for (int i = 0; i < 8; ++i) c.a.mask = c.a.mask & Mask::window(8, -1);
       },
       "mask.nodes().size()", "must be in [1, 16]"},
      {"moved_from", Base::kDense,
       [](ValidCall& c) {
         Mask stolen = std::move(c.a.mask);
         static_cast<void>(stolen);
       },
       "mask.nodes().size()", "is 0"},
      {"combined_with_moved_from", Base::kDense,
       [](ValidCall& c) {
         Mask stolen = std::move(c.a.mask);
         c.a.mask = c.a.mask & stolen;
       },
       "mask.nodes[1].lhs", "postfix"},
  };
  return kRows;
}

}  // namespace pagoda::test
