// AMD implementation of arch/math.hpp.
//
// AMD Instinct MI300 ISA, "V_EXP_F32", "V_RCP_F32", "V_MAX3_F32", "V_PERM_B32", "V_PACK_B32_F16".
// gfx942 has no conversion to bf16, and its fp8 is another one (FNUZ, bias 8): those are
// conversions.hpp.
#pragma once

#include <cstdint>

#include "arch/hip/conversions.hpp"
#include "arch/layout/types.hpp"
#include "arch/layout/where.hpp"
#include "core/element.hpp"
#include "core/target.hpp"

namespace pagoda::arch {
inline namespace hip {

using HalfPair __attribute__((ext_vector_type(2))) = _Float16;

// v_exp_f32 flushes results below 2^-126.
PAGODA_DEVICE float exp2_approx(float x, Where = Where::current()) {
  return __builtin_amdgcn_exp2f(x);
}
PAGODA_DEVICE float reciprocal_approx(float x, Where = Where::current()) {
  return __builtin_amdgcn_rcpf(x);
}
PAGODA_DEVICE float max3(float a, float b, float c, Where = Where::current()) {
  return __builtin_fmaxf(__builtin_fmaxf(a, b), c);
}

PAGODA_DEVICE uint32_t byte_permute(uint32_t a, uint32_t b, uint32_t selector,
                                    Where = Where::current()) {
  return __builtin_amdgcn_perm(b, a, amd_bits::perm_selector(selector));
}

PAGODA_DEVICE uint32_t pack_bf16(float low, float high, Where = Where::current()) {
  return byte_permute(amd_bits::round_bf16(low), amd_bits::round_bf16(high), 0x7632);
}
PAGODA_DEVICE uint32_t pack_bf16_numbers(float low, float high, Where = Where::current()) {
  const auto rounded = [](float value) {
    const auto bits = __builtin_bit_cast(uint32_t, value);
    return bits + (0x7fffU + (bits >> 16U & 1U));
  };
  return byte_permute(rounded(low), rounded(high), 0x7632);
}
PAGODA_DEVICE uint32_t pack_f16(float low, float high, Where = Where::current()) {
  return __builtin_bit_cast(uint32_t,
                            HalfPair{static_cast<_Float16>(low), static_cast<_Float16>(high)});
}
PAGODA_DEVICE uint16_t pack_e4m3(float low, float high, Where = Where::current()) {
  return static_cast<uint16_t>(core::float_to_f8e4m3(low) | core::float_to_f8e4m3(high) << 8);
}

PAGODA_DEVICE void widen_e4m3_f16(Words<4> from, Words<4> (&to)[2], Where = Where::current()) {
  PAGODA_UNROLL
  for (int i = 0; i < 8; ++i) {
    const uint32_t pair = byte_permute(from.word[i / 2], 0, i % 2 == 0 ? 0x4140 : 0x4342);
    const auto small = __builtin_bit_cast(HalfPair, amd_bits::e4m3_as_small_f16(pair));
    const HalfPair scale = {static_cast<_Float16>(256), static_cast<_Float16>(256)};
    to[i / 4].word[i % 4] =
        __builtin_bit_cast(uint32_t, small * scale) | amd_bits::e4m3_f16_nan_bits(pair);
  }
}
PAGODA_DEVICE void widen_e4m3_bf16(Words<4> from, Words<4> (&to)[2], Where = Where::current()) {
  PAGODA_UNROLL
  for (int i = 0; i < 8; ++i) {
    const uint32_t pair = byte_permute(from.word[i / 2], 0, i % 2 == 0 ? 0x4140 : 0x4342);
    const uint32_t low = core::float_to_bits(amd_bits::e4m3_as_float(pair & 0xffU));
    const uint32_t high = core::float_to_bits(amd_bits::e4m3_as_float(pair >> 16U));
    to[i / 4].word[i % 4] = byte_permute(low, high, 0x7632) | amd_bits::e4m3_bf16_nan_bits(pair);
  }
}

}  // namespace hip
}  // namespace pagoda::arch
