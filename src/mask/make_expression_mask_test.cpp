// Which operands become interval, bias or program, and which expressions are unsupported. Linked
// without the emulator: the host code evaluates no mask.
#include "mask/make_expression_mask.hpp"

#include <cstdint>
#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace pagoda::mask {
namespace {

// Never dereferenced: the arrays may be device memory.
template <class T>
const T* device_pointer(uintptr_t address) {
  return reinterpret_cast<const T*>(address);  // NOLINT(performance-no-int-to-ptr)
}
const uint32_t* words() { return device_pointer<uint32_t>(0x1000); }
const float* bias() { return device_pointer<float>(0x2000); }

Mask bits() { return Mask::bits({words(), 100}, {device_pointer<int64_t>(0x3000), 3}); }
Mask padding(uintptr_t address) { return Mask::padding({device_pointer<int32_t>(address), 2}); }
Mask additive(std::vector<int64_t> shape) {
  ConstTensor tensor{.data = bias(), .dtype = DType::kF32};
  tensor.rank = static_cast<int32_t>(shape.size());
  int64_t stride = 1;
  for (size_t axis = shape.size(); axis-- > 0;) {
    tensor.shape[axis] = shape[axis];
    tensor.strides[axis] = stride;
    stride *= shape[axis];
  }
  return Mask::additive(tensor);
}

std::string steps(const ExpressionMask& mask) {
  std::string text;
  for (uint32_t program = mask.program; program != 0; program >>= 2) text += ".L&|"[program & 3U];
  return text;
}

TEST(MakeExpressionMask, an_and_of_intervals_needs_no_program) {
  const Mask mask = Mask::causal() & Mask::window(30, 5) & (Mask::chunked(12) & padding(64));
  const ExpressionMask made = make_expression_mask(mask.nodes());
  EXPECT_EQ(made.program, 0U);
  EXPECT_TRUE(made.is_interval);
  EXPECT_FALSE(made.has_bias());
  EXPECT_EQ(made.interval.rule.left, 30);
  EXPECT_EQ(made.interval.rule.right, 0);
  EXPECT_EQ(made.interval.rule.chunk, 12);
  EXPECT_EQ(made.interval.valid_lengths, device_pointer<int32_t>(64));
}

TEST(MakeExpressionMask, intervals_that_are_not_one_rule_are_leaves) {
  const Mask mask = padding(64) & Mask::chunked(6) & padding(128) & Mask::chunked(4);
  const ExpressionMask made = make_expression_mask(mask.nodes());
  EXPECT_EQ(steps(made), "LL&");
  EXPECT_TRUE(made.is_interval);
  EXPECT_EQ(made.interval.rule.chunk, 6);
  EXPECT_EQ(made.leaves[0].interval.valid_lengths, device_pointer<int32_t>(128));
  EXPECT_EQ(made.leaves[1].interval.rule.chunk, 4);
}

TEST(MakeExpressionMask, deeper_operands_come_first) {
  const Mask mask = Mask::causal() & bits() & (Mask::window(1, 1) | (bits() & Mask::chunked(4)));
  const ExpressionMask made = make_expression_mask(mask.nodes());
  EXPECT_EQ(steps(made), "LL&L|L&");
  EXPECT_FALSE(made.is_interval);
  EXPECT_EQ(made.interval.rule.right, 0);
  EXPECT_EQ(made.leaves[0].words, words());
  EXPECT_EQ(made.leaves[1].interval.rule.chunk, 4);
  EXPECT_EQ(made.leaves[2].interval.rule.left, 1);
  EXPECT_EQ(made.leaves[3].row_offsets, device_pointer<int64_t>(0x3000));
}

TEST(MakeExpressionMask, an_extent_of_1_broadcasts) {
  const Mask mask = additive({2, 1, 7, 9}) & Mask::causal() & additive({1, 7, 9});
  const ExpressionMask made = make_expression_mask(mask.nodes());
  ASSERT_EQ(made.num_biases, 2);
  EXPECT_EQ(made.program, 0U);
  EXPECT_EQ(made.biases[0].data, bias());
  EXPECT_EQ(made.biases[0].sequence_stride, 63);
  EXPECT_EQ(made.biases[0].head_stride, 0);
  EXPECT_EQ(made.biases[0].row_stride, 9);
  EXPECT_EQ(made.biases[1].sequence_stride, 0);
  EXPECT_EQ(made.biases[1].row_stride, 9);
}

TEST(MakeExpressionMask, unsupported_expressions_have_a_reason) {
  const Mask functor =
      Mask::functor([](void*, int32_t, int32_t, int64_t, int64_t) { return true; });
  EXPECT_EQ(unsupported_mask_reason((Mask::causal() & functor).nodes()),
            "a functor mask runs on the CPU only");
  Mask mask = bits();
  for (int i = 1; i < ExpressionMask::kMaxLeaves; ++i) mask = mask | bits();
  EXPECT_EQ(unsupported_mask_reason(mask.nodes()), "");
  EXPECT_EQ(unsupported_mask_reason((mask | bits()).nodes()),
            "the mask has 9 leaves, at most 8 run on a GPU");
  ConstTensor table{.data = bias(), .dtype = DType::kF32};
  table.rank = 2;
  table.shape = {1, int64_t{2} * INT32_MAX + 1};
  EXPECT_NE(unsupported_mask_reason(Mask::relative_bias(table).nodes()), "");
  table.shape = {1, int64_t{2} * INT32_MAX - 1};
  EXPECT_EQ(unsupported_mask_reason(Mask::relative_bias(table).nodes()), "");
}

}  // namespace
}  // namespace pagoda::mask
