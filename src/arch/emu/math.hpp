// Arithmetic of single instructions, correctly rounded here (the hardware may be an ulp or two
// off).
#pragma once

#include <algorithm>
#include <cmath>

#include "arch/layout/types.hpp"
#include "core/element.hpp"

namespace pagoda::arch {
inline namespace emu {

inline float exp2_approx(float x) {
  const float result = std::exp2(x);
  return result < 0x1p-126F ? 0.0F : result;  // .ftz; NaN stays
}
inline float reciprocal_approx(float x) { return 1 / x; }
inline float max3(float a, float b, float c) { return std::fmax(std::fmax(a, b), c); }
inline uint32_t pack_bf16(float low, float high) {
  return core::float_to_bf16(low) | static_cast<uint32_t>(core::float_to_bf16(high)) << 16;
}
// A NaN becomes 0, so that a kernel which needs it is found.
inline uint32_t pack_bf16_numbers(float low, float high) {
  return pack_bf16(low == low ? low : 0, high == high ? high : 0);
}
inline uint32_t pack_f16(float low, float high) {
  return core::float_to_f16(low) | static_cast<uint32_t>(core::float_to_f16(high)) << 16;
}
inline uint16_t pack_e4m3(float low, float high) {
  return static_cast<uint16_t>(core::float_to_f8e4m3(low) | core::float_to_f8e4m3(high) << 8);
}

inline uint32_t byte_permute(uint32_t a, uint32_t b, uint32_t selector) {
  const uint64_t bytes = static_cast<uint64_t>(b) << 32U | a;
  uint32_t result = 0;
  for (uint32_t i = 0; i < 4; ++i) {
    const uint32_t from = selector >> 4 * i & 7U;
    result |= static_cast<uint32_t>(bytes >> 8 * from & 0xffU) << 8 * i;
  }
  return result;
}

template <class Convert>
void widen_e4m3(Words<4> from, Words<4> (&to)[2], Convert convert) {
  for (uint32_t i = 0; i < 16; i += 2) {
    const auto at = [&](uint32_t j) {
      const auto byte = static_cast<uint8_t>(from.word[j / 4] >> 8U * (j % 4));
      return static_cast<uint32_t>(convert(core::f8e4m3_to_float(byte)));
    };
    to[i / 8].word[i / 2 % 4] = at(i) | at(i + 1) << 16U;
  }
}
inline void widen_e4m3_f16(Words<4> from, Words<4> (&to)[2]) {
  widen_e4m3(from, to, core::float_to_f16);
}
inline void widen_e4m3_bf16(Words<4> from, Words<4> (&to)[2]) {
  widen_e4m3(from, to, core::float_to_bf16);
}

}  // namespace emu
}  // namespace pagoda::arch
