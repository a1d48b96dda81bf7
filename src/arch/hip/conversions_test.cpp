// The bit arithmetic of arch/hip/math.hpp on the host, for every input; v_perm_b32 and v_pk_mul_f16
// are modelled.
#include "arch/hip/conversions.hpp"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <random>

#include "arch/emu/math.hpp"

namespace pagoda::arch {
namespace {

// Exact: both factors are powers of two times at most 4 bits.
uint16_t times_256(uint16_t half) { return core::float_to_f16(core::f16_to_float(half) * 256); }

TEST(AmdConversions, e4m3_widens_to_f16_and_bf16_as_core_does) {
  for (uint32_t low = 0; low < 256; ++low) {
    for (uint32_t high = 0; high < 256; ++high) {
      const uint32_t pair = low | high << 16U;
      const uint32_t small = amd_bits::e4m3_as_small_f16(pair);
      const uint32_t halves =
          (times_256(static_cast<uint16_t>(small)) |
           static_cast<uint32_t>(times_256(static_cast<uint16_t>(small >> 16U))) << 16U) |
          amd_bits::e4m3_f16_nan_bits(pair);
      const uint32_t brains = (core::float_to_bits(amd_bits::e4m3_as_float(low)) >> 16U |
                               (core::float_to_bits(amd_bits::e4m3_as_float(high)) & 0xffff0000U)) |
                              amd_bits::e4m3_bf16_nan_bits(pair);
      for (const uint32_t shift : {0U, 16U}) {
        const auto byte = static_cast<uint8_t>(pair >> shift);
        const float want = core::f8e4m3_to_float(byte);
        const float f16 = core::f16_to_float(static_cast<uint16_t>(halves >> shift));
        const float bf16 = core::bf16_to_float(static_cast<uint16_t>(brains >> shift));
        if (std::isnan(want)) {
          ASSERT_TRUE(std::isnan(f16) && std::isnan(bf16)) << low << ' ' << high;
          continue;
        }
        ASSERT_EQ(core::float_to_bits(f16), core::float_to_bits(want)) << low << ' ' << high;
        ASSERT_EQ(core::float_to_bits(bf16), core::float_to_bits(want)) << low << ' ' << high;
      }
    }
  }
}

TEST(AmdConversions, bf16_rounds_as_core_does) {
  std::mt19937 random(1);
  for (int i = 0; i < 1'000'000; ++i) {
    const float value = core::bits_to_float(static_cast<uint32_t>(random()));
    ASSERT_EQ(amd_bits::round_bf16(value) >> 16U, core::float_to_bf16(value)) << value;
  }
  for (const float value : {INFINITY, -INFINITY, NAN, core::bits_to_float(0x7fffffffU),
                            core::bits_to_float(0xffffffffU), core::bits_to_float(0x7f800001U),
                            std::numeric_limits<float>::max(), 0x1.01p0F, 0x1.03p0F}) {
    EXPECT_EQ(amd_bits::round_bf16(value) >> 16U, core::float_to_bf16(value)) << value;
  }
}

// v_perm_b32 (MI300 ISA): bytes 0 .. 3 are S1's, 4 .. 7 S0's.
uint32_t perm(uint32_t s0, uint32_t s1, uint32_t selector) {
  const uint64_t bytes = static_cast<uint64_t>(s0) << 32U | s1;
  uint32_t result = 0;
  for (uint32_t i = 0; i < 4; ++i) {
    const uint32_t from = selector >> 8 * i & 0xffU;
    result |= static_cast<uint32_t>(bytes >> 8 * from & 0xffU) << 8 * i;
  }
  return result;
}

TEST(AmdConversions, selectors_of_prmt_become_those_of_v_perm) {
  for (uint32_t selector = 0; selector < 0x10000; ++selector) {
    if ((selector & 0x8888U) != 0) continue;
    ASSERT_EQ(perm(0x77665544, 0x33221100, amd_bits::perm_selector(selector)),
              emu::byte_permute(0x33221100, 0x77665544, selector));
  }
}

}  // namespace
}  // namespace pagoda::arch
