// Real half of arch/math.hpp: the approximate functions and the packing conversions.
#pragma once

#include <cstdint>

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

}  // namespace ptx
}  // namespace pagoda::arch
