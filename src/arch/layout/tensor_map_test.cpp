// Rules of tensor maps, violated one at a time, and boxes against a plain gather; then end to end:
// matrix descriptors read what box_element() wrote.
#include "arch/layout/tensor_map.hpp"

#include <cstdint>
#include <gtest/gtest.h>
#include <random>
#include <string>
#include <vector>

#include "arch/layout/operand_tile.hpp"

namespace pagoda::arch {
namespace {

TensorMapSpec good_spec() {  // 64 x 64 x 8 of bf16, boxes of 64 x 8
  return {.rank = 3,
          .address = 1024,
          .dims = {64, 64, 8},
          .strides_bytes = {128, 8192},
          .box = {64, 8, 1},
          .swizzle = Swizzle::k128B};
}

TEST(TensorMap, a_good_spec_has_no_fault) { EXPECT_FALSE(validate(good_spec()).exists()); }

template <typename Break>
void expect_fault(Break break_rule, const std::string& field, int32_t dimension, uint64_t value,
                  uint64_t limit) {
  TensorMapSpec spec = good_spec();
  break_rule(spec);
  const TensorMapFault fault = validate(spec);
  ASSERT_TRUE(fault.exists()) << field;
  EXPECT_EQ(fault.field, field);
  EXPECT_EQ(fault.dimension, dimension) << field;
  EXPECT_EQ(fault.value, value) << field;
  EXPECT_EQ(fault.limit, limit) << field;
}

TEST(TensorMap, each_broken_rule_names_field_value_and_limit) {
  using Spec = TensorMapSpec;
  constexpr uint64_t kMaxDim = uint64_t{1} << 32, kStrideLimit = uint64_t{1} << 40;
  expect_fault([](Spec& s) { s.rank = 0; }, "rank", -1, 0, 1);
  expect_fault([](Spec& s) { s.rank = 6; }, "rank", -1, 6, 5);
  expect_fault([](Spec& s) { s.address = 1032; }, "address", -1, 1032, 16);
  expect_fault([](Spec& s) { s.dims[1] = 0; }, "dims", 1, 0, 1);
  expect_fault([](Spec& s) { s.dims[1] = kMaxDim + 1; }, "dims", 1, kMaxDim + 1, kMaxDim);
  expect_fault([](Spec& s) { s.strides_bytes[0] = 136; }, "strides_bytes", 0, 136, 16);
  expect_fault([](Spec& s) { s.strides_bytes[1] = kStrideLimit; }, "strides_bytes", 1, kStrideLimit,
               kStrideLimit - 16);
  expect_fault([](Spec& s) { s.box[1] = 0; }, "box", 1, 0, 1);
  expect_fault([](Spec& s) { s.box[1] = 257; }, "box", 1, 257, 256);
  expect_fault([](Spec& s) { s.element_strides[1] = 0; }, "element_strides", 1, 0, 1);
  expect_fault([](Spec& s) { s.element_strides[1] = 9; }, "element_strides", 1, 9, 8);
  expect_fault([](Spec& s) { s.element_strides[0] = 2; }, "element_strides", 0, 2, 1);
  expect_fault([](Spec& s) { s.box[0] = 4; }, "inner box bytes", -1, 8, 16);
  expect_fault([](Spec& s) { s.box[0] = 72; }, "inner box bytes", -1, 144, 128);
  expect_fault([](Spec& s) { s.swizzle = Swizzle::k64B; }, "inner box bytes", -1, 128, 64);
  expect_fault([](Spec& s) { s.box[0] = 8, s.box[1] = 255, s.box[2] = 8; }, "box bytes", -1,
               uint64_t{128} * 255 * 8, 227 << 10);
  expect_fault([](Spec& s) { s.box[1] = s.box[2] = 256; }, "box bytes", -1, 8 << 20, 227 << 10);
  expect_fault(
      [](Spec& s) {
        s.type = TensorMapType::kU16;
        s.oob_fill = OobFill::kNan;
      },
      "oob_fill", -1, 1, 6);
}

TEST(TensorMap, limits_themselves_are_allowed) {
  TensorMapSpec spec = good_spec();
  spec.dims[1] = uint64_t{1} << 32;
  spec.strides_bytes[1] = (uint64_t{1} << 40) - 16;
  spec.strides_bytes[0] = 0;  // the driver accepts one row for all
  spec.box[1] = 256;
  spec.element_strides[1] = 8;
  spec.oob_fill = OobFill::kNan;
  EXPECT_FALSE(validate(spec).exists());
  spec.swizzle = Swizzle::kNone;
  spec.box[0] = 256;
  EXPECT_FALSE(validate(spec).exists());
}

constexpr int kOutside = -1, kUntouched = -2;

// Memory after a load, as source byte per destination byte.
std::vector<int64_t> load(const TensorMapSpec& spec, const int32_t (&at)[kMaxTensorRank],
                          uint32_t shared_address, size_t bytes) {
  std::vector<int64_t> memory(bytes, kUntouched);
  uint32_t extent[kMaxTensorRank] = {1, 1, 1, 1, 1};
  for (int32_t d = 0; d < spec.rank; ++d) extent[d] = box_extent(spec, d);
  uint32_t i[kMaxTensorRank];
  for (i[4] = 0; i[4] < extent[4]; ++i[4])
    for (i[3] = 0; i[3] < extent[3]; ++i[3])
      for (i[2] = 0; i[2] < extent[2]; ++i[2])
        for (i[1] = 0; i[1] < extent[1]; ++i[1])
          for (i[0] = 0; i[0] < extent[0]; ++i[0]) {
            const BoxElement element = box_element(spec, at, i, shared_address);
            for (uint32_t byte = 0; byte < element_bytes(spec.type); ++byte) {
              int64_t& to = memory.at(shared_address + element.destination_bytes + byte);
              EXPECT_EQ(to, kUntouched);
              to = element.is_inside ? static_cast<int64_t>(element.source_bytes) + byte : kOutside;
            }
          }
  return memory;
}

TEST(TensorMap, a_load_starts_at_16_bytes_of_a_line_and_128_bytes_of_shared_memory) {
  const TensorMapSpec spec = good_spec();  // eight elements are 16 bytes
  EXPECT_FALSE(validate_load(spec, {8, 3, -1}, 128).exists());
  EXPECT_FALSE(validate_load(spec, {-8, 3, -1}, 1024 + 128).exists());
  const TensorMapFault odd = validate_load(spec, {3, 0, 0}, 0);
  EXPECT_STREQ(odd.field, "coordinates");
  EXPECT_EQ(odd.value, 3U);
  EXPECT_EQ(odd.limit, 8U);
  EXPECT_TRUE(validate_load(spec, {-1, 0, 0}, 0).exists());
  EXPECT_STREQ(validate_load(spec, {0, 0, 0}, 64).field, "shared_address");
}

constexpr size_t kLine = 128;

// The swizzle uses the absolute address, also where the pattern starts before the box.
TEST(TensorMap, the_swizzle_counts_lines_of_the_address) {
  const TensorMapSpec spec = good_spec();
  const auto memory = load(spec, {0, 0, 0}, 3 * 128, 3 * kLine + box_bytes(spec));
  EXPECT_EQ(memory[3 * kLine], 3 * 16);  // line 3 of the pattern: chunk 0 holds chunk 0 ^ 3
  EXPECT_EQ(memory[3 * kLine + 48], 0);
  EXPECT_EQ(memory[8 * kLine + 16], 5 * 128 + 16);  // line 8 is line 0 again
}

TEST(TensorMap, lines_of_a_narrow_swizzled_box_are_a_pattern_width_apart) {
  TensorMapSpec spec = good_spec();
  spec.box[0] = 16;  // 32 bytes of 128
  ASSERT_FALSE(validate(spec).exists());
  EXPECT_EQ(box_bytes(spec), 8U * 32);
  EXPECT_EQ(box_footprint_bytes(spec), 8U * 128);
  const auto memory = load(spec, {0, 0, 0}, 0, 8 * kLine);
  EXPECT_EQ(memory[0], 0);
  EXPECT_EQ(memory[32], kUntouched);
  EXPECT_EQ(memory[kLine + 16], 128);  // line 1: chunk 0 lies in chunk 1
  EXPECT_EQ(memory[kLine], 128 + 16);
  EXPECT_EQ(memory[7 * kLine], kUntouched);
  EXPECT_EQ(memory[7 * kLine + 112], 7 * 128);
}

TEST(TensorMap, a_box_is_written_once_and_completely) {
  std::mt19937 random(11);
  const auto below = [&](uint32_t bound) { return static_cast<uint32_t>(random() % bound); };
  for (int round = 0; round < 300; ++round) {
    TensorMapSpec spec{.type = static_cast<TensorMapType>(below(13)),
                       .rank = static_cast<int32_t>(1 + below(5)),
                       .swizzle = static_cast<Swizzle>(below(5))};
    int32_t at[kMaxTensorRank] = {};
    const uint32_t width = spec.swizzle == Swizzle::kNone ? 64 : swizzle_width_bytes(spec.swizzle);
    spec.box[0] = 16 * (1 + below(width / 16)) / element_bytes(spec.type);
    for (int32_t d = 0; d < spec.rank; ++d) {
      spec.dims[d] = 1 + below(40);
      if (d > 0) {
        spec.strides_bytes[d - 1] = uint64_t{16} * below(50);
        spec.box[d] = 1 + below(6);
        spec.element_strides[d] = 1 + below(3);
      }
      at[d] = static_cast<int32_t>(below(50)) - 10;
    }
    ASSERT_FALSE(validate(spec).exists()) << validate(spec).field;
    const uint32_t start = 128 * below(9);
    const auto memory = load(spec, at, start, start + box_footprint_bytes(spec));
    size_t written = 0;
    for (const int64_t byte : memory) written += byte == kUntouched ? 0 : 1;
    EXPECT_EQ(written, box_bytes(spec));
  }
}

TEST(TensorMap, an_unswizzled_box_is_a_plain_gather) {
  TensorMapSpec spec{.type = TensorMapType::kF32,
                     .rank = 3,
                     .dims = {10, 7, 5},
                     .strides_bytes = {48, 480},
                     .box = {8, 5, 2},
                     .element_strides = {1, 2, 1}};
  const int32_t at[kMaxTensorRank] = {-3, 4, 4};
  const auto memory = load(spec, at, 0, box_bytes(spec));
  ASSERT_EQ(memory.size(), 8U * 3 * 2 * 4);
  size_t to = 0;
  for (int z = 4; z < 6; ++z) {
    for (int y = 4; y < 9; y += 2) {
      for (int x = -3; x < 5; ++x) {
        const bool is_inside = x >= 0 && x < 10 && y < 7 && z < 5;
        EXPECT_EQ(memory[to], is_inside ? 4 * x + 48 * y + 480 * z : kOutside);
        to += 4;
      }
    }
  }
}

// As in a paged cache: [tokens][head_dim] in global memory, one box per panel of 128 bytes, read as
// K (K-major: tokens are N) and as V (MN-major: head_dim is N).
TEST(TensorMap, descriptors_read_what_boxes_wrote) {
  constexpr int32_t kTokens = 64, kHeadDim = 128;
  for (const auto& [swizzle, panel] : {std::pair{Swizzle::k128B, 64},
                                       {Swizzle::k64B, 32},
                                       {Swizzle::k32B, 16},
                                       {Swizzle::kNone, 8}}) {
    const TensorMapSpec spec{.rank = 2,
                             .dims = {kHeadDim, kTokens},
                             .strides_bytes = {uint64_t{kHeadDim} * 2},
                             .box = {static_cast<uint32_t>(panel), kTokens},
                             .swizzle = swizzle};
    ASSERT_FALSE(validate(spec).exists());
    constexpr uint32_t kStart = 2048;
    std::vector<int64_t> memory(kStart + kTokens * kHeadDim * 2, kUntouched);
    for (int32_t column = 0; column < kHeadDim; column += panel) {
      const uint32_t to = kStart + static_cast<uint32_t>(column) * kTokens * 2;
      const auto box = load(spec, {column, 0, 0, 0, 0}, to, memory.size());
      for (size_t i = 0; i < box.size(); ++i) {
        if (box[i] != kUntouched) memory[i] = box[i];
      }
    }
    for (const Major major : {Major::kK, Major::kMN}) {
      const OperandTile tile{.start_bytes = kStart,
                             .mn = major == Major::kK ? kTokens : kHeadDim,
                             .k = major == Major::kK ? kHeadDim : kTokens,
                             .major = major,
                             .swizzle = swizzle,
                             .order = panel_order(major)};
      const SmemDescriptor whole = encode(describe(tile), DescriptorFormat::kSm90);
      for (int32_t k0 = 0; k0 < tile.k; k0 += 16) {
        const auto fields =
            decode(advance(whole, tile_offset(tile, 0, k0)), DescriptorFormat::kSm90);
        for (int32_t mn = 0; mn < tile.mn; ++mn) {
          for (int32_t k = 0; k < 16; ++k) {
            const int32_t token = major == Major::kK ? mn : k0 + k;
            const int32_t d = major == Major::kK ? k0 + k : mn;
            ASSERT_EQ(memory.at(element_offset(fields, major, mn, k, 2)),
                      (token * kHeadDim + d) * 2);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace pagoda::arch
