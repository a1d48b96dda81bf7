// Arithmetic that the hardware has as one instruction.
//
//   float exp2_approx(float)      2^x within 2 ulp (ex2.approx.ftz); 0 for -inf and below 2^-126
//   float reciprocal_approx(float)      1 / x within 1 ulp (rcp.approx.ftz)
//   float max3(float, float, float)                     NaN only where all three are NaN
//   uint32_t pack_bf16(float low, float high), pack_f16(float low, float high)     nearest even
//   uint32_t pack_bf16_numbers(float low, float high)     the same; of a NaN: anything
//   uint16_t pack_e4m3(float low, float high)                                      saturating
//   void widen_e4m3_f16(Words<4> from, Words<4> (&to)[2]), widen_e4m3_bf16
//                                 16 elements, exact; a NaN stays a NaN, its bits differ by target
//   uint32_t byte_permute(uint32_t a, uint32_t b, uint32_t selector)
//                                 byte i is selected by hex digit i of the selector: 0 .. 3 of a,
//                                 4 .. 7 of b
#pragma once

#include "core/target.hpp"

#if PAGODA_ON_NVIDIA
#include "arch/ptx/math.hpp"
#elif PAGODA_ON_AMD
#include "arch/hip/math.hpp"
#else
#include "arch/emu/math.hpp"
#endif
