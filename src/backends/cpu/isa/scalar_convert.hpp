// Element conversions one at a time, by integer arithmetic; core/element.hpp holds the same
// definitions for the rest of the library (see tile_ops.hpp why these units keep their own).
#pragma once

#include <cstdint>
#include <cstring>

#include "backends/cpu/isa/tile_ops.hpp"

namespace pagoda::cpu {
namespace {

inline float float_from_bits(uint32_t bits) {
  float value = 0;
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}
inline uint32_t bits_of(float value) {
  uint32_t bits = 0;
  __builtin_memcpy(&bits, &value, sizeof bits);
  return bits;
}

inline float f16_element(uint32_t half) {
  const uint32_t sign = (half & 0x8000U) << 16;
  const uint32_t exponent = (half >> 10) & 0x1fU;
  const uint32_t mantissa = half & 0x3ffU;
  if (exponent == 31) return float_from_bits(sign | 0x7f800000U | (mantissa << 13));
  if (exponent != 0) return float_from_bits(sign | ((exponent + 112U) << 23) | (mantissa << 13));
  const float magnitude = static_cast<float>(mantissa) * 0x1p-24F;
  return sign != 0 ? -magnitude : magnitude;
}

inline float f8e4m3_element(uint32_t byte) {
  const uint32_t sign = (byte & 0x80U) << 24;
  const uint32_t exponent = (byte >> 3) & 0xfU;
  const uint32_t mantissa = byte & 7U;
  if (exponent == 15 && mantissa == 7) return float_from_bits(sign | 0x7fc00000U);
  if (exponent != 0) return float_from_bits(sign | ((exponent + 120U) << 23) | (mantissa << 20));
  const float magnitude = static_cast<float>(mantissa) * 0x1p-9F;
  return sign != 0 ? -magnitude : magnitude;
}

inline uint16_t bf16_from(float value) {
  const uint32_t bits = bits_of(value);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return static_cast<uint16_t>((bits >> 16) | 0x40U);
  return static_cast<uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}

inline uint16_t f16_from(float value) {
  const uint32_t bits = bits_of(value);
  const uint32_t sign = (bits >> 16) & 0x8000U;
  const uint32_t magnitude = bits & 0x7fffffffU;
  if (magnitude > 0x7f800000U) return static_cast<uint16_t>(sign | 0x7e00U);
  if (magnitude >= 0x477ff000U) return static_cast<uint16_t>(sign | 0x7c00U);
  if (magnitude < 0x38800000U) {
    return static_cast<uint16_t>(sign | (bits_of(float_from_bits(magnitude) + 0.5F) - 0x3f000000U));
  }
  const uint32_t rebiased = magnitude - 0x38000000U;
  return static_cast<uint16_t>(sign | ((rebiased + 0xfffU + ((rebiased >> 13) & 1U)) >> 13));
}

inline float element_at(const void* src, int element, int i) {
  switch (element) {
    case kElementF32: return static_cast<const float*>(src)[i];
    case kElementF16: return f16_element(static_cast<const uint16_t*>(src)[i]);
    case kElementBF16:
      return float_from_bits(static_cast<uint32_t>(static_cast<const uint16_t*>(src)[i]) << 16);
    default: return f8e4m3_element(static_cast<const uint8_t*>(src)[i]);
  }
}

inline void convert_to_f32_scalar(float* dst, const void* src, int element, int n, int first) {
  for (int i = first; i < n; ++i) dst[i] = element_at(src, element, i);
}

inline void store_row_scalar(void* dst, int element, const float* src, int n, float factor,
                             int first) {
  for (int i = first; i < n; ++i) {
    const float value = src[i] * factor;
    switch (element) {
      case kElementF32: static_cast<float*>(dst)[i] = value; break;
      case kElementF16: static_cast<uint16_t*>(dst)[i] = f16_from(value); break;
      default: static_cast<uint16_t*>(dst)[i] = bf16_from(value); break;
    }
  }
}

// Words [first, first + 16) of 16 rows to 16 columns, one after another.
inline void transpose16_scalar(float* dst, const float* const* rows, int first) {
  for (int w = 0; w < 16; ++w) {
    for (int i = 0; i < 16; ++i) dst[w * 16 + i] = rows[i][first + w];
  }
}

}  // namespace
}  // namespace pagoda::cpu
