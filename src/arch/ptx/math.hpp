// PTX implementation of arch/math.hpp: the approximate exponential, packing and widening
// conversions.
//
// PTX ISA, "Floating Point Instructions": ex2, rcp, max (three inputs sm_100); "Data Movement and
// Conversion Instructions": cvt, prmt. Registers only.
#pragma once

#include <cstdint>

#include "arch/layout/types.hpp"
#include "arch/layout/where.hpp"
#include "core/element.hpp"
#include "core/target.hpp"

namespace pagoda::arch {
inline namespace ptx {

PAGODA_DEVICE float exp2_approx(float x, Where = Where::current()) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
PAGODA_DEVICE float reciprocal_approx(float x, Where = Where::current()) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
PAGODA_DEVICE float max3(float a, float b, float c, Where = Where::current()) {
#if __CUDA_ARCH__ >= 1000
  float y;
  asm("max.f32 %0, %1, %2, %3;" : "=f"(y) : "f"(a), "f"(b), "f"(c));
  return y;
#else
  return fmaxf(fmaxf(a, b), c);
#endif
}

// The first operand of a packing conversion is the upper half.
PAGODA_DEVICE uint32_t pack_bf16(float low, float high, Where = Where::current()) {
  uint32_t packed;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  return packed;
}
PAGODA_DEVICE uint32_t pack_bf16_numbers(float low, float high, Where = Where::current()) {
  return pack_bf16(low, high);
}
PAGODA_DEVICE uint32_t pack_f16(float low, float high, Where = Where::current()) {
  uint32_t packed;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  return packed;
}
// The instruction exists from sm_89 on.
PAGODA_DEVICE uint16_t pack_e4m3(float low, float high, Where = Where::current()) {
#if __CUDA_ARCH__ >= 890
  uint16_t packed;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(packed) : "f"(high), "f"(low));
  return packed;
#else
  return static_cast<uint16_t>(core::float_to_f8e4m3(low) | core::float_to_f8e4m3(high) << 8);
#endif
}

PAGODA_DEVICE uint32_t byte_permute(uint32_t a, uint32_t b, uint32_t selector,
                                    Where = Where::current()) {
  uint32_t result;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(result) : "r"(a), "r"(b), "r"(selector));
  return result;
}

// e4m3 to f16 is one instruction a pair (sm_89).
PAGODA_DEVICE void widen_e4m3_f16(Words<4> from, Words<4> (&to)[2], Where = Where::current()) {
  PAGODA_UNROLL
  for (int i = 0; i < 4; ++i) {
    uint32_t& low = to[i / 2].word[2 * i % 4];
    uint32_t& high = to[i / 2].word[2 * i % 4 + 1];
#if __CUDA_ARCH__ >= 890
    asm("{ .reg .b16 l, h; mov.b32 {l, h}, %2; cvt.rn.f16x2.e4m3x2 %0, l; cvt.rn.f16x2.e4m3x2 %1, "
        "h; }"
        : "=r"(low), "=r"(high)
        : "r"(from.word[i]));
#else
    const auto wide = [&](uint32_t byte) {
      const auto bits = static_cast<uint8_t>(from.word[i] >> 8 * byte);
      return static_cast<uint32_t>(core::float_to_f16(core::f8e4m3_to_float(bits)));
    };
    low = wide(0) | wide(1) << 16U;
    high = wide(2) | wide(3) << 16U;
#endif
  }
}
// From f16 on to bf16 through float. The alternative, shifting bits and multiplying by 2^120,
// spends most of its time on NaN: 252 us for 233 us (H200, fp8 decode of 64 x 4096 keys).
PAGODA_DEVICE void widen_e4m3_bf16(Words<4> from, Words<4> (&to)[2], Where = Where::current()) {
  widen_e4m3_f16(from, to);
  PAGODA_UNROLL
  for (int i = 0; i < 8; ++i) {
    uint32_t& pair = to[i / 4].word[i % 4];
    float low, high;
    asm("{ .reg .b16 l, h; mov.b32 {l, h}, %2; cvt.f32.f16 %0, l; cvt.f32.f16 %1, h; }"
        : "=f"(low), "=f"(high)
        : "r"(pair));
    pair = pack_bf16(low, high);
  }
}

}  // namespace ptx
}  // namespace pagoda::arch
