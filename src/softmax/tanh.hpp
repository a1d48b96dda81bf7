// tanh for soft caps, without tanhf's branch for each score.
#pragma once

#include <cmath>

#include "arch/math.hpp"
#include "core/target.hpp"
#include "softmax/online.hpp"

namespace pagoda::softmax {

// tanh(x) = 1 - 2 / (1 + e^2x) within 2.5e-7 of any x, with two instructions of the
// special-function unit (MUFU). NaN stays NaN.
[[nodiscard]] PAGODA_DEVICE float tanh_by_exp2(float x) {
  const float power = arch::exp2_approx(2 * kLog2e * x);
  return 1 - 2 * arch::reciprocal_approx(1 + power);
}

// tanh(x) of any x within 3e-7, and within 3e-6 of itself near 0, where the formula above loses
// digits. Five odd terms, minimax in absolute error, fitted by Lawson's iteration in double
// precision.
[[nodiscard]] PAGODA_DEVICE float tanh_approx(float x) {
  constexpr float kRange = 0.75F;
  const float square = x * x;
  float factor = 0.012318739F * square - 0.04928034F;
  factor = factor * square + 0.13226087F;
  factor = factor * square - 0.33323076F;
  factor = factor * square + 0.9999972F;
  return fabsf(x) <= kRange ? x * factor : tanh_by_exp2(x);
}

// tanh(inner * x), and multiples of it, by four odd terms whose coefficients have the factors:
// four instructions of the FMA pipe, which issues eight times as many as MUFU, beside the product
// with x. Within 2e-7 of 1 where |inner * x| <= kRange. The same fit.
struct ShortTanh {
  static constexpr float kRange = 0.5F;
  // Of `inner`: no coefficient overflows or loses digits.
  static constexpr float kLeastInner = 1e-5F, kMostInner = 1e5F;

  float linear, cubic, quintic, septic;

  [[nodiscard]] static PAGODA_DEVICE ShortTanh of(float inner) {
    const float square = inner * inner, third = inner * square, fifth = third * square;
    return {0.9999977F * inner, -0.33320653F * third, 0.13145138F * fifth,
            -0.043372285F * fifth * square};
  }
  [[nodiscard]] PAGODA_DEVICE ShortTanh scaled(float factor) const {
    return {linear * factor, cubic * factor, quintic * factor, septic * factor};
  }
  // The value divided by x.
  [[nodiscard]] PAGODA_DEVICE float slope(float x) const {
    const float square = x * x;
    return ((septic * square + quintic) * square + cubic) * square + linear;
  }
  [[nodiscard]] PAGODA_DEVICE float operator()(float x) const { return x * slope(x); }
  // Whether it is for every x of up to this magnitude.
  [[nodiscard]] static PAGODA_DEVICE bool covers(float inner, float largest) {
    const float factor = fabsf(inner);
    return factor >= kLeastInner && factor <= kMostInner && largest * factor <= kRange;
  }
};

}  // namespace pagoda::softmax
