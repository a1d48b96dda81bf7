// exp2 on the FMA pipe, for the fraction of the probabilities that would otherwise wait for the
// special-function unit (MUFU), as in FlashAttention-4.
#pragma once

#include <cstdint>

#include "core/element.hpp"
#include "core/target.hpp"

namespace pagoda::softmax {

// 2^x for x <= 127, with a relative error below 3.1e-6 for x >= -126. A cubic's 1e-4 would be
// enough for 16-bit P, but not for the row sum and the LSE. Exact at integers, so that the largest
// key of a row has P = 1. Exactly 0 for x <= -127 and -infinity. NaN stays NaN on the host; on a
// GPU, whose NaN has all bits set, it may become the largest float.
//
// Adding 1.5 * 2^23 rounds x to the nearest integer and keeps it in the low bits. A quartic covers
// the fraction in [-0.5, 0.5] (minimax in relative error, constant term 1, fitted by Lawson's
// iteration in double precision).
[[nodiscard]] PAGODA_HOST_DEVICE float exp2_polynomial(float x) {
  constexpr float kRound = 12582912.0F;
  x = x < -127.0F ? -127.0F : x;
  const float rounded = x + kRound;
  const float f = x - (rounded - kRound);
  float p = 0.00958285304F * f + 0.0559064247F;
  p = p * f + 0.240240986F;
  p = p * f + 0.693124193F;
  p = p * f + 1.0F;
  return core::bits_to_float(core::float_to_bits(p) + (core::float_to_bits(rounded) << 23U));
}

}  // namespace pagoda::softmax
