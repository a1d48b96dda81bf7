// Bit arithmetic of arch/hip/math.hpp that gfx942 has no instruction for, two elements at a time.
// Plain C++, so that a test on the host covers every input.
#pragma once

#include <cstdint>

#include "core/element.hpp"
#include "core/target.hpp"

namespace pagoda::arch::amd_bits {

// Bits of the bf16 in the upper half; nearest even, NaN stays NaN. The lower half is arbitrary.
PAGODA_HOST_DEVICE uint32_t round_bf16(float value) {
  const uint32_t bits = core::float_to_bits(value);
  const uint32_t rounded = bits + 0x7fffU + (bits >> 16U & 1U);
  return value != value ? bits | 0x400000U : rounded;
}

// Two e4m3 in the low bytes of the halves of `pair`. The NaN of e4m3 is 0x7f and 0xff: adding one
// to the magnitude reaches bit 7.
PAGODA_HOST_DEVICE uint32_t e4m3_nans(uint32_t pair) {  // bit 7 of each half
  return ((pair & 0x007f007fU) + 0x00010001U) & 0x00800080U;
}
// Their exponents and mantissas at the places that f16 has: 2^-8 times the value. 480, which a NaN
// becomes after the multiplication by 2^8, needs one more bit of exponent: e4m3_f16_nan_bits.
PAGODA_HOST_DEVICE uint32_t e4m3_as_small_f16(uint32_t pair) {
  return (pair & 0x007f007fU) << 7U | (pair & 0x00800080U) << 8U;
}
PAGODA_HOST_DEVICE uint32_t e4m3_f16_nan_bits(uint32_t pair) { return e4m3_nans(pair) << 6U; }

// One e4m3 in the low byte, as a float. Subnormal floats must not be flushed.
PAGODA_HOST_DEVICE float e4m3_as_float(uint32_t byte) {
  return core::bits_to_float((byte & 0x7fU) << 20U | (byte & 0x80U) << 24U) * 0x1p120F;
}
// 480 = 0x43f0 in bf16, with these bits 0x7ff0.
PAGODA_HOST_DEVICE uint32_t e4m3_bf16_nan_bits(uint32_t pair) {
  const uint32_t nans = e4m3_nans(pair);
  return (nans << 7U) - (nans << 3U);
}

// A selector of v_perm_b32, a byte for each byte, from one of prmt, a hex digit for each.
PAGODA_HOST_DEVICE uint32_t perm_selector(uint32_t digits) {
  return (digits & 7U) | (digits >> 4U & 7U) << 8U | (digits >> 8U & 7U) << 16U |
         (digits >> 12U & 7U) << 24U;
}

}  // namespace pagoda::arch::amd_bits
