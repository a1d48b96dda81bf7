// The C functions that kernel sources call, for clang -x hip: without the headers of ROCm, clang
// has them for the host alone. Included by target.hpp; not for other use.
#pragma once

#if defined(__HIP__)

#include <cmath>
#include <cstddef>
#include <cstring>

#include "core/elementary.hpp"

// Overloads of the host's functions, which device code prefers. LLVM lowers exp2 and log2 to
// v_exp_f32 and v_log_f32 with the scaling that subnormal numbers need (1 ulp).
PAGODA_DEVICE float exp2f(float x) { return __builtin_exp2f(x); }
PAGODA_DEVICE float log2f(float x) { return __builtin_log2f(x); }
PAGODA_DEVICE float fmaxf(float a, float b) { return __builtin_fmaxf(a, b); }
PAGODA_DEVICE float fabsf(float x) { return __builtin_fabsf(x); }
PAGODA_DEVICE double exp(double x) { return pagoda::core::exp_double(x); }
PAGODA_DEVICE double log(double x) { return pagoda::core::log_double(x); }
PAGODA_DEVICE void* memcpy(void* to, const void* from, size_t bytes) {
  return __builtin_memcpy(to, from, bytes);
}

#endif
