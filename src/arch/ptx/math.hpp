// Real half of arch/math.hpp: the approximate functions and the packing conversions.
#pragma once

#include <cstdint>

#include "arch/types.hpp"
#include "arch/where.hpp"
#include "core/element.hpp"
#include "core/target.hpp"

namespace pagoda::arch {
inline namespace ptx {

PAGODA_DEVICE float exp2_approx(float x, Where = Where::current()) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
PAGODA_DEVICE float rcp_approx(float x, Where = Where::current()) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
PAGODA_DEVICE float log2_approx(float x, Where = Where::current()) {
  float y;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
PAGODA_DEVICE float tanh_approx(float x, Where = Where::current()) {
  float y;
  asm("tanh.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
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
PAGODA_DEVICE uint32_t pack_f16(float low, float high, Where = Where::current()) {
  uint32_t packed;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  return packed;
}
// The instruction came with sm_89.
PAGODA_DEVICE uint16_t pack_e4m3(float low, float high, Where = Where::current()) {
#if __CUDA_ARCH__ >= 890
  uint16_t packed;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(packed) : "f"(high), "f"(low));
  return packed;
#else
  return static_cast<uint16_t>(core::float_to_f8e4m3(low) | core::float_to_f8e4m3(high) << 8);
#endif
}

// e4m3 to f16 has an instruction (sm_89) ..
PAGODA_DEVICE uint32_t widen_e4m3_pair(uint16_t pair) {
  uint32_t wide;
#if __CUDA_ARCH__ >= 890
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(wide) : "h"(pair));
#else
  wide = core::float_to_f16(core::f8e4m3_to_float(static_cast<uint8_t>(pair))) |
         static_cast<uint32_t>(
             core::float_to_f16(core::f8e4m3_to_float(static_cast<uint8_t>(pair >> 8))))
             << 16U;
#endif
  return wide;
}
PAGODA_DEVICE void widen_e4m3_f16(Words<4> from, Words<4> (&to)[2], Where = Where::current()) {
  PAGODA_UNROLL
  for (int i = 0; i < 8; ++i) {
    to[i / 4].word[i % 4] =
        widen_e4m3_pair(static_cast<uint16_t>(from.word[i / 2] >> 16U * (i % 2)));
  }
}
// .. and on to bf16 through float. (By moving bits and a product with 2^120 it took longer, most of it to
// see NaN: 252 us for 233 us in fp8 decode of 64 x 4096 keys.)
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
