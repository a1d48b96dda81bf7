// Matrix descriptors against values that CUTLASS 4.7.0 computes, and bit by bit: a wrong field
// changes an address or fails validation.
#include "arch/layout/smem_descriptor.hpp"

#include <cstdint>
#include <gtest/gtest.h>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "arch/layout/operand_tile.hpp"

namespace pagoda::arch {
namespace {

struct Golden {
  OperandTile tile;
  uint64_t sm90, sm100;  // sm90 0: SM90 has no such mode
};

constexpr OperandTile bf16_tile(Major major, Swizzle swizzle) {
  return {.mn = 128, .k = 64, .major = major, .swizzle = swizzle};
}

constexpr Golden kGolden[] = {
    {bf16_tile(Major::kK, Swizzle::k128B), 0x4000004000010000, 0x4000404000010000},
    {bf16_tile(Major::kK, Swizzle::k64B), 0x8000002000010000, 0x8000402000010000},
    {bf16_tile(Major::kK, Swizzle::k32B), 0xc000001000010000, 0xc000401000010000},
    {bf16_tile(Major::kK, Swizzle::kNone), 0x0000000800800000, 0x0000400800800000},
    {bf16_tile(Major::kMN, Swizzle::k128B), 0x4000008000400000, 0x4000408000400000},
    {bf16_tile(Major::kMN, Swizzle::k64B), 0x8000008000200000, 0x8000408000200000},
    {bf16_tile(Major::kMN, Swizzle::k32B), 0xc000008000100000, 0xc000408000100000},
    {bf16_tile(Major::kMN, Swizzle::kNone), 0x0000000800800000, 0x0000400800800000},
    {{.mn = 128, .k = 128, .element_bytes = 1}, 0x4000004000010000, 0x4000404000010000},
    {{.mn = 128,
      .k = 32,
      .element_bytes = 4,
      .major = Major::kMN,
      .swizzle = Swizzle::k128BAtom32B},
     0,
     0x2000408000200000},
};

static_assert(encode(describe(kGolden[0].tile), DescriptorFormat::kSm90).bits == kGolden[0].sm90);

constexpr DescriptorFormat kFormats[] = {DescriptorFormat::kSm90, DescriptorFormat::kSm100};

uint64_t golden_bits(const Golden& golden, DescriptorFormat format) {
  return format == DescriptorFormat::kSm90 ? golden.sm90 : golden.sm100;
}

TEST(SmemDescriptor, tiles_have_the_golden_descriptors) {
  for (const Golden& golden : kGolden) {
    for (const DescriptorFormat format : kFormats) {
      if (golden_bits(golden, format) == 0) continue;
      const SmemDescriptor descriptor = encode(describe(golden.tile), format);
      EXPECT_EQ(descriptor.bits, golden_bits(golden, format)) << std::hex << descriptor.bits;
      EXPECT_EQ(decode(descriptor, format), describe(golden.tile));
      EXPECT_EQ(validate(descriptor, format, golden.tile.major, golden.tile.element_bytes),
                nullptr);
    }
  }
}

TEST(SmemDescriptor, sm100_differs_from_sm90_by_bit_46) {
  for (const Golden& golden : kGolden) {
    if (golden.sm90 == 0) continue;
    EXPECT_EQ(golden.sm100, golden.sm90 | uint64_t{1} << 46);
  }
}

// Every address that one instruction of 128 rows (M or N) reads.
std::vector<uint32_t> addresses(SmemDescriptor descriptor, DescriptorFormat format, Major major,
                                int32_t element_bytes) {
  const SmemDescriptorFields fields = decode(descriptor, format);
  std::vector<uint32_t> found;
  for (int32_t mn = 0; mn < 128; ++mn) {
    for (int32_t k = 0; k < 32 / element_bytes; ++k) {
      found.push_back(element_offset(fields, major, mn, k, element_bytes));
    }
  }
  return found;
}

TEST(SmemDescriptor, every_wrong_bit_reads_elsewhere_or_is_invalid) {
  for (const Golden& golden : kGolden) {
    for (const DescriptorFormat format : kFormats) {
      if (golden_bits(golden, format) == 0) continue;
      const auto& [major, bytes] = std::tuple{golden.tile.major, golden.tile.element_bytes};
      const auto right = addresses({golden_bits(golden, format)}, format, major, bytes);
      for (int bit = 0; bit < 64; ++bit) {
        const SmemDescriptor wrong{golden_bits(golden, format) ^ uint64_t{1} << bit};
        EXPECT_TRUE(validate(wrong, format, major, bytes) != nullptr ||
                    addresses(wrong, format, major, bytes) != right)
            << std::hex << golden_bits(golden, format) << std::dec << " bit " << bit;
      }
    }
  }
}

TEST(SmemDescriptor, every_wrong_base_offset_reads_elsewhere_or_is_invalid) {
  for (const Golden& golden : kGolden) {
    const auto& [major, bytes] = std::tuple{golden.tile.major, golden.tile.element_bytes};
    const auto right = addresses({golden.sm100}, DescriptorFormat::kSm100, major, bytes);
    for (uint64_t base = 1; base < 8; ++base) {
      const SmemDescriptor wrong{golden.sm100 | base << 49};
      EXPECT_TRUE(validate(wrong, DescriptorFormat::kSm100, major, bytes) != nullptr ||
                  addresses(wrong, DescriptorFormat::kSm100, major, bytes) != right)
          << std::hex << golden.sm100 << " base offset " << base;
    }
  }
}

TEST(SmemDescriptor, fields_come_back_and_overlap_nowhere) {
  std::mt19937 random(3);
  const auto bytes = [&] { return static_cast<uint32_t>(random() & 0x3fffU) << 4; };
  for (int i = 0; i < 20000; ++i) {
    const SmemDescriptorFields fields{.start_bytes = bytes(),
                                      .leading_bytes = bytes(),
                                      .stride_bytes = bytes(),
                                      .base_offset = static_cast<uint32_t>(random() & 7U),
                                      .swizzle = static_cast<Swizzle>(random() % 5)};
    EXPECT_EQ(decode(encode(fields, DescriptorFormat::kSm100), DescriptorFormat::kSm100), fields);
    if (fields.swizzle == Swizzle::k128BAtom32B) continue;
    EXPECT_EQ(decode(encode(fields, DescriptorFormat::kSm90), DescriptorFormat::kSm90), fields);
  }
}

TEST(SmemDescriptor, complaints_name_the_field) {
  const SmemDescriptor good{0x4000404000010000};
  const auto complaint = [](uint64_t bits, Major major = Major::kK, int32_t element_bytes = 2) {
    const char* reason = validate({bits}, DescriptorFormat::kSm100, major, element_bytes);
    return std::string(reason == nullptr ? "" : reason);
  };
  EXPECT_EQ(complaint(good.bits), "");
  EXPECT_NE(complaint(good.bits ^ uint64_t{1} << 46).find("46-48"), std::string::npos);
  EXPECT_NE(complaint(good.bits ^ uint64_t{1} << 52).find("bit 52"), std::string::npos);
  EXPECT_NE(complaint(good.bits | uint64_t{1} << 61).find("61-63"), std::string::npos);
  EXPECT_NE(complaint(good.bits ^ uint64_t{1} << 55).find("reserved"), std::string::npos);
  EXPECT_NE(complaint(good.bits ^ uint64_t{2} << 16).find("leading"), std::string::npos);
  EXPECT_NE(complaint(0x2000408000200000, Major::kK, 4).find("MN-major"), std::string::npos);
  EXPECT_NE(std::string(validate({0x4000004000010000}, DescriptorFormat::kSm90, Major::kMN, 1))
                .find("16-bit"),
            std::string::npos);
  // 64-byte swizzle repeats after 4 lines: line 5 is line 1.
  EXPECT_NE(complaint(0x8000402000010000 | uint64_t{5} << 49).find("base offset"),
            std::string::npos);
  EXPECT_EQ(complaint(0x8000402000010000 | uint64_t{1} << 49), "");
}

}  // namespace
}  // namespace pagoda::arch
