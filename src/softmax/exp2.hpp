// exp2 on the multiply-add pipe, for the share of the probabilities that would otherwise queue for
// the one special-function unit of a GPU.
#pragma once

#include <cstdint>

#include "core/element.hpp"
#include "core/target.hpp"

namespace pagoda::softmax {

// 2^x for x <= 127, relative error below 3.1e-6 for x >= -126: a cubic's 1e-4 would do for P of 16 bits,
// but shows in the row sum and so in the LSE;
// exact at integers, so the largest key of a row has P = 1. Exactly 0 for x <= -127 and -infinity.
// NaN stays NaN on the host; on a GPU, whose NaN has all bits set, it may become the largest float.
//
// Adding 1.5 * 2^23 rounds x to the nearest integer and leaves it in the low bits; a quartic covers
// the rest in [-0.5, 0.5] (minimax in relative error, constant term 1, fitted by Lawson's
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
