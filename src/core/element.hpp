// Conversions between stored elements and float. Scalar and exact: the definition that every
// vectorised conversion must match bit for bit, on the host and on a GPU.
#pragma once

#include <cstdint>
#include <cstring>

#include "core/target.hpp"
#include "pagoda/dtype.hpp"

namespace pagoda::core {

// Not std::bit_cast: nvcc wants functions that are declared for the device.
[[nodiscard]] PAGODA_HOST_DEVICE float bits_to_float(uint32_t bits) {
  return __builtin_bit_cast(float, bits);
}
[[nodiscard]] PAGODA_HOST_DEVICE uint32_t float_to_bits(float value) {
  return __builtin_bit_cast(uint32_t, value);
}

[[nodiscard]] PAGODA_HOST_DEVICE float bf16_to_float(uint16_t bits) {
  return bits_to_float(static_cast<uint32_t>(bits) << 16);
}

// Round to nearest even; NaN stays NaN (quiet).
[[nodiscard]] PAGODA_HOST_DEVICE uint16_t float_to_bf16(float value) {
  const auto bits = float_to_bits(value);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return static_cast<uint16_t>((bits >> 16) | 0x40U);
  return static_cast<uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}

[[nodiscard]] PAGODA_HOST_DEVICE float f16_to_float(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000U) << 16;
  const uint32_t exponent = (half >> 10) & 0x1fU;
  const uint32_t mantissa = half & 0x3ffU;
  if (exponent == 31) return bits_to_float(sign | 0x7f800000U | (mantissa << 13));
  if (exponent != 0) {
    return bits_to_float(sign | ((exponent + 112U) << 23) | (mantissa << 13));
  }
  const float magnitude = static_cast<float>(mantissa) * 0x1p-24F;  // subnormal or zero
  return sign != 0 ? -magnitude : magnitude;
}

// Round to nearest even; overflow gives infinity, NaN stays NaN.
[[nodiscard]] PAGODA_HOST_DEVICE uint16_t float_to_f16(float value) {
  const auto bits = float_to_bits(value);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000U);
  const uint32_t magnitude = bits & 0x7fffffffU;
  if (magnitude > 0x7f800000U) return sign | 0x7e00U;
  if (magnitude >= 0x477ff000U) return sign | 0x7c00U;  // >= 65520 rounds to infinity
  if (magnitude < 0x38800000U) {                        // subnormal: let the FPU round at 2^-24
    const float scaled = bits_to_float(magnitude) + 0.5F;
    return static_cast<uint16_t>(sign | (float_to_bits(scaled) - 0x3f000000U));
  }
  const uint32_t rebiased = magnitude - 0x38000000U;
  return static_cast<uint16_t>(sign | ((rebiased + 0xfffU + ((rebiased >> 13) & 1U)) >> 13));
}

[[nodiscard]] PAGODA_HOST_DEVICE float f8e4m3_to_float(uint8_t byte) {
  const uint32_t exponent = (byte >> 3) & 0xfU;
  const uint32_t mantissa = byte & 7U;
  const uint32_t sign = static_cast<uint32_t>(byte & 0x80U) << 24;
  if (exponent == 15 && mantissa == 7) return bits_to_float(sign | 0x7fc00000U);
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * 0x1p-9F;
    return sign != 0 ? -magnitude : magnitude;
  }
  return bits_to_float(sign | ((exponent + 120U) << 23) | (mantissa << 20));
}

// Round to nearest even, saturating at +-448; NaN stays NaN.
[[nodiscard]] PAGODA_HOST_DEVICE uint8_t float_to_f8e4m3(float value) {
  const auto bits = float_to_bits(value);
  const auto sign = static_cast<uint8_t>((bits >> 24) & 0x80U);
  const uint32_t magnitude = bits & 0x7fffffffU;
  if (magnitude > 0x7f800000U) return sign | 0x7fU;
  if (magnitude >= 0x43e00000U) return sign | 0x7eU;          // 448 and above
  if (magnitude < 0x3c800000U) {                              // below 2^-6: steps of 2^-9
    const float scaled = bits_to_float(magnitude) + 0x1p14F;  // ulp of 2^14 is 2^-9
    return static_cast<uint8_t>(sign | (float_to_bits(scaled) - 0x46800000U));
  }
  const uint32_t rebiased = magnitude - 0x3c000000U;  // exponent 120 -> 0
  const uint32_t rounded = (rebiased + 0x7ffffU + ((rebiased >> 20) & 1U)) >> 20;
  return static_cast<uint8_t>(sign | (rounded > 0x7eU ? 0x7eU : rounded));
}

[[nodiscard]] inline float load_element(const void* base, DType dtype, int64_t index) {
  const auto* bytes = static_cast<const unsigned char*>(base) + index * size_bytes(dtype);
  switch (dtype) {
    case DType::kF32: {
      float value = 0;
      std::memcpy(&value, bytes, sizeof value);
      return value;
    }
    case DType::kF16:
    case DType::kBF16: {
      uint16_t bits = 0;
      std::memcpy(&bits, bytes, sizeof bits);
      return dtype == DType::kF16 ? f16_to_float(bits) : bf16_to_float(bits);
    }
    case DType::kF8E4M3: return f8e4m3_to_float(*bytes);
  }
  return 0;
}

inline void store_element(void* base, DType dtype, int64_t index, float value) {
  auto* bytes = static_cast<unsigned char*>(base) + index * size_bytes(dtype);
  switch (dtype) {
    case DType::kF32: std::memcpy(bytes, &value, sizeof value); return;
    case DType::kF16:
    case DType::kBF16: {
      const uint16_t bits = dtype == DType::kF16 ? float_to_f16(value) : float_to_bf16(value);
      std::memcpy(bytes, &bits, sizeof bits);
      return;
    }
    case DType::kF8E4M3: *bytes = float_to_f8e4m3(value); return;
  }
}

// The nearest value that `dtype` can hold.
[[nodiscard]] inline float rounded_to(DType dtype, float value) {
  unsigned char bytes[4];
  store_element(bytes, dtype, 0, value);
  return load_element(bytes, dtype, 0);
}

}  // namespace pagoda::core
