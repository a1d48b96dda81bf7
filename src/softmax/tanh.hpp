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

// The same, but below 0.625, where that formula loses digits, by the polynomial of Cephes' tanhf.c.
// Both are computed: a branch for each score of a fragment would cost more.
[[nodiscard]] PAGODA_DEVICE float tanh_approx(float x) {
  const float square = x * x;
  float p = -5.70498872745e-3F * square + 2.06390887954e-2F;
  p = p * square - 5.37397155531e-2F;
  p = p * square + 1.33314422036e-1F;
  p = p * square - 3.33332819422e-1F;
  const float small = p * square * x + x;
  return fabsf(x) < 0.625F ? small : tanh_by_exp2(x);
}

// tanh(inner * x), and multiples of it, by four odd terms whose coefficients have the factors:
// four instructions of the FMA pipe, which issues eight times as many as MUFU, beside the product
// with x. Within 2e-7 of 1 where |inner * x| <= kRange. Minimax in absolute error, fitted by
// Lawson's iteration in double precision.
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
