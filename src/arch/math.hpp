// Arithmetic that the hardware has as one instruction.
//
//   float exp2_approx(float)     2^x, ex2.approx.ftz: two ulp; -inf gives 0; subnormal results are
//   0 float rcp_approx(float), log2_approx(float), tanh_approx(float) float max3(float, float,
//   float) uint32_t pack_bf16(float low, float high), pack_f16(float low, float high)     round to
//   nearest even uint16_t pack_e4m3(float low, float high) saturating
#pragma once

#include "core/target.hpp"

#if PAGODA_ON_GPU
#include "arch/ptx/math.hpp"
#else
#include "arch/emu/math.hpp"
#endif
