// Instruction descriptors against values that CUTLASS 4.7.0 computes, bit by bit, and the shapes
// that each form has.
#include "arch/layout/instruction_descriptor.hpp"

#include <cstdint>
#include <gtest/gtest.h>
#include <random>
#include <string>
#include <vector>

namespace pagoda::arch {
namespace {

struct Golden {
  InstructionDescriptorFields fields;
  int32_t cta_group;
  uint32_t bits;
};

constexpr InstructionDescriptorFields same(MmaKind kind, MmaType type, int32_t m, int32_t n,
                                           Major b_major = Major::kK) {
  InstructionDescriptorFields fields{.kind = kind, .a_type = type, .b_type = type};
  fields.b_major = b_major;
  fields.m = m;
  fields.n = n;
  return fields;
}

constexpr InstructionDescriptorFields scaled(MmaKind kind, MmaType type, ScaleType scale, int32_t m,
                                             int32_t n) {
  InstructionDescriptorFields fields = same(kind, type, m, n);
  fields.scale_type = scale;
  return fields;
}

constexpr Golden kGolden[] = {
    {same(MmaKind::kF16, MmaType::kBF16, 128, 128), 1, 0x08200490},
    {same(MmaKind::kF16, MmaType::kBF16, 128, 128, Major::kMN), 1, 0x08210490},
    {same(MmaKind::kF16, MmaType::kBF16, 64, 128), 1, 0x04200490},
    {same(MmaKind::kF16, MmaType::kBF16, 256, 128), 2, 0x10200490},
    {same(MmaKind::kF16, MmaType::kBF16, 128, 256, Major::kMN), 1, 0x08410490},
    {same(MmaKind::kF16, MmaType::kF16, 128, 128), 1, 0x08200010},
    {same(MmaKind::kF8F6F4, MmaType::kE4M3, 128, 128), 1, 0x08200010},
    {same(MmaKind::kF8F6F4, MmaType::kE5M2, 128, 128, Major::kMN), 1, 0x08210490},
    {same(MmaKind::kTF32, MmaType::kTF32, 128, 64), 1, 0x08100910},
    {scaled(MmaKind::kMxF8F6F4, MmaType::kE4M3, ScaleType::kUE8M0, 128, 128), 1, 0x08a00000},
    {scaled(MmaKind::kMxF4NvF4, MmaType::kE2M1, ScaleType::kUE4M3, 128, 128), 1, 0x08200480},
    {scaled(MmaKind::kMxF4NvF4, MmaType::kE2M1, ScaleType::kUE4M3, 256, 256), 2, 0x10400480},
};

TEST(InstructionDescriptor, fields_have_the_golden_bits) {
  for (const Golden& golden : kGolden) {
    EXPECT_EQ(encode(golden.fields).bits, golden.bits) << std::hex << golden.bits;
    EXPECT_EQ(decode({golden.bits}, golden.fields.kind), golden.fields) << std::hex << golden.bits;
    const MmaForm form{.kind = golden.fields.kind, .cta_group = golden.cta_group};
    EXPECT_EQ(validate({golden.bits}, form), nullptr) << std::hex << golden.bits;
  }
}

TEST(InstructionDescriptor, every_wrong_bit_means_something_else_or_is_invalid) {
  for (const Golden& golden : kGolden) {
    const MmaForm form{.kind = golden.fields.kind, .cta_group = golden.cta_group};
    for (int bit = 0; bit < 32; ++bit) {
      const InstructionDescriptor wrong{golden.bits ^ 1U << bit};
      EXPECT_TRUE(validate(wrong, form) != nullptr || decode(wrong, form.kind) != golden.fields)
          << std::hex << golden.bits << std::dec << " bit " << bit;
    }
  }
}

TEST(InstructionDescriptor, fields_come_back_and_overlap_nowhere) {
  std::mt19937 random(5);
  const auto below = [&](uint32_t bound) { return static_cast<uint32_t>(random() % bound); };
  for (int i = 0; i < 50000; ++i) {
    InstructionDescriptorFields fields{.kind = static_cast<MmaKind>(below(7))};
    do {
      fields.a_type = static_cast<MmaType>(below(10));
      fields.b_type = static_cast<MmaType>(below(10));
    } while (type_code(fields.kind, fields.a_type) == kNoTypeCode ||
             type_code(fields.kind, fields.b_type) == kNoTypeCode);
    fields.a_major = static_cast<Major>(below(2));
    fields.b_major = static_cast<Major>(below(2));
    fields.n = static_cast<int32_t>(8 * (1 + below(32)));
    fields.is_a_negated = below(2) != 0;
    fields.is_b_negated = below(2) != 0;
    fields.is_sparse = below(2) != 0;
    fields.sparsity_selector = below(4);
    if (is_block_scaled(fields.kind)) {
      fields.m = static_cast<int32_t>(128 * (1 + below(2)));
      fields.scale_type = static_cast<ScaleType>(below(2));
      fields.a_scale_id = below(4);
      fields.b_scale_id = below(4);
      fields.has_k96 = below(2) != 0;
    } else {
      fields.m = static_cast<int32_t>(16 * (1 + below(16)));
      fields.d_type = static_cast<AccumulatorType>(below(3));
      fields.is_saturated = below(2) != 0;
      fields.max_shift = below(4);
    }
    ASSERT_EQ(decode(encode(fields), fields.kind), fields);
  }
}

std::string complaint(const InstructionDescriptorFields& fields, MmaForm form = {}) {
  form.kind = fields.kind;
  const char* reason = validate(encode(fields), form);
  return reason == nullptr ? "" : reason;
}

TEST(InstructionDescriptor, types_that_do_not_go_together_are_refused) {
  auto fields = same(MmaKind::kF16, MmaType::kF16, 128, 128);
  fields.d_type = AccumulatorType::kF16;
  EXPECT_EQ(complaint(fields), "");
  fields.b_type = MmaType::kBF16;
  EXPECT_NE(complaint(fields), "");
  fields = same(MmaKind::kI8, MmaType::kS8, 128, 128);
  EXPECT_NE(complaint(fields), "");  // D is f32
  fields.d_type = AccumulatorType::kS32;
  EXPECT_EQ(complaint(fields), "");
  fields.is_saturated = true;
  EXPECT_EQ(complaint(fields), "");
  fields.is_b_negated = true;
  EXPECT_NE(complaint(fields), "");
  EXPECT_NE(complaint(same(MmaKind::kF8F6F4, MmaType::kE2M3, 128, 128, Major::kMN)), "");
  EXPECT_EQ(complaint(same(MmaKind::kF8F6F4, MmaType::kE4M3, 128, 128, Major::kMN)), "");
  fields = same(MmaKind::kF16, MmaType::kBF16, 128, 128);
  fields.a_major = Major::kMN;
  EXPECT_EQ(complaint(fields), "");
  EXPECT_NE(complaint(fields, {.is_a_in_tmem = true}), "");
  EXPECT_NE(complaint(scaled(MmaKind::kMxF8F6F4, MmaType::kE4M3, ScaleType::kUE4M3, 128, 128)), "");
}

struct Shapes {
  MmaForm form;
  int32_t m;
  std::vector<int32_t> n;
};

std::vector<int32_t> steps(int32_t step) {
  std::vector<int32_t> all;
  for (int32_t n = step; n <= 256; n += step) all.push_back(n);
  return all;
}

std::vector<Shapes> shapes() {
  std::vector<Shapes> table;
  for (const MmaKind kind : {MmaKind::kF16, MmaKind::kTF32, MmaKind::kF8F6F4}) {
    table.push_back({{.kind = kind}, 64, steps(8)});
    table.push_back({{.kind = kind}, 128, steps(16)});
    for (const int32_t m : {128, 256}) {
      table.push_back({{.kind = kind, .cta_group = 2}, m, steps(16)});
      table.push_back({{.kind = kind, .cta_group = 2, .is_a_in_tmem = true}, m, steps(32)});
    }
    for (const int32_t m : {32, 64, 128}) {
      table.push_back({{.kind = kind, .is_ws = true}, m, {64, 128, 256}});
    }
  }
  auto i8 = steps(16);
  i8.insert(i8.begin(), 8);
  i8.insert(i8.begin() + 2, 24);
  table.push_back({{.kind = MmaKind::kI8}, 64, i8});
  table.push_back({{.kind = MmaKind::kI8, .cta_group = 2}, 256, steps(32)});
  table.push_back({{.kind = MmaKind::kMxF8F6F4}, 128, steps(8)});
  table.push_back({{.kind = MmaKind::kMxF8F6F4, .cta_group = 2}, 256, steps(16)});
  table.push_back({{.kind = MmaKind::kMxF8F6F4, .cta_group = 2}, 128, {}});
  for (const MmaKind kind : {MmaKind::kMxF4, MmaKind::kMxF4NvF4}) {
    table.push_back({{.kind = kind}, 128, steps(8)});
    table.push_back({{.kind = kind, .cta_group = 2}, 128, steps(16)});
    table.push_back({{.kind = kind, .cta_group = 2}, 256, steps(16)});
    table.push_back({{.kind = kind, .is_ws = true}, 128, {}});
  }
  table.push_back({{.cta_group = 2, .is_ws = true}, 128, {}});
  table.push_back({{}, 256, {}});
  table.push_back({{}, 32, {}});
  table.push_back({{.cta_group = 2}, 64, {}});
  return table;
}

TEST(InstructionDescriptor, each_form_accepts_its_shapes_and_no_others) {
  for (const Shapes& row : shapes()) {
    std::vector<int32_t> accepted;
    for (int32_t n = 0; n <= 300; ++n) {
      if (validate_shape(row.form, row.m, n) == nullptr) accepted.push_back(n);
    }
    EXPECT_EQ(accepted, row.n) << "kind " << static_cast<int>(row.form.kind) << " M " << row.m
                               << " cta_group " << row.form.cta_group;
  }
}

}  // namespace
}  // namespace pagoda::arch
