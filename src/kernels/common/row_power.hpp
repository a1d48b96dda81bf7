// RowPower: scales a row of Q in bf16 so that it can be multiplied in f16 with an fp8 cache, all of
// whose numbers f16 represents. The error is at most 2^-39 of the row's largest element (of one
// below 2^-112 more), less than that of the fp32 sum.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "arch/math.hpp"
#include "arch/memory.hpp"
#include "arch/warp.hpp"
#include "core/target.hpp"

namespace pagoda::kernels {

// The power of two that scales `largest`, a row's largest magnitude, to [2^14, 2^15), and its
// inverse. 1 for a row of zeros and for NaN. Infinity stays what it is by either factor, and so do
// all scores of its row, whatever the factor makes of the row's other elements.
struct RowPower {
  float factor = 1, inverse = 1;

  static PAGODA_HOST_DEVICE RowPower of(float largest) {
    if (!(largest > 0)) return {};
    uint32_t bits = 0;
    memcpy(&bits, &largest, sizeof bits);
    uint32_t exponent = bits >> 23U;   // 1 .. 255
    if (exponent < 15) exponent = 15;  // so that the inverse is a normal number
    const uint32_t up = (268 - exponent) << 23U, down = (exponent - 14) << 23U;
    RowPower power;
    memcpy(&power.factor, &up, sizeof up);
    memcpy(&power.inverse, &down, sizeof down);
    return power;
  }
};

// The largest magnitude of pairs of bf16 numbers; NaN if one is NaN.
class LargestOfPairs {
 public:
  PAGODA_HOST_DEVICE void add(uint32_t pair) {
    const uint32_t low = pair << 16U & kMagnitude, high = pair & kMagnitude;
    low_ = low > low_ ? low : low_;
    high_ = high > high_ ? high : high_;
  }
  [[nodiscard]] PAGODA_HOST_DEVICE float value() const {
    const uint32_t bits = low_ > high_ ? low_ : high_;
    float value = 0;
    memcpy(&value, &bits, sizeof value);
    return value;
  }

 private:
  static constexpr uint32_t kMagnitude = 0x7fff0000U;
  uint32_t low_ = 0, high_ = 0;
};

// A pair of bf16 numbers as f16, times `factor`.
PAGODA_DEVICE uint32_t scaled_to_f16(uint32_t pair, float factor) {
  const uint32_t bits[2] = {pair << 16U, pair & 0xffff0000U};
  float values[2];
  memcpy(values, bits, sizeof values);
  return arch::pack_f16(values[0] * factor, values[1] * factor);
}

// The four lanes of a quad share a row of bf16 numbers, which becomes f16; each has groups of 16
// columns.
template <int n>
PAGODA_DEVICE void add_pairs(const arch::Words<4> (&groups)[n][2], LargestOfPairs& largest) {
  PAGODA_UNROLL
  for (int i = 0; i < 8 * n; ++i) largest.add(groups[i / 8][i / 4 % 2].word[i % 4]);
}
// `largest`: of the lane's columns.
PAGODA_DEVICE RowPower power_of_row(const LargestOfPairs& largest) {
  // Of a NaN and a number either: the row's scores are NaN anyway.
  float value = largest.value();
  value = fmaxf(value, arch::shuffle_xor(value, 1));
  value = fmaxf(value, arch::shuffle_xor(value, 2));
  return RowPower::of(value);
}
template <int n>
PAGODA_DEVICE void scale_to_f16(const RowPower& power, arch::Words<4> (&groups)[n][2]) {
  PAGODA_UNROLL
  for (int i = 0; i < 8 * n; ++i) {
    uint32_t& pair = groups[i / 8][i / 4 % 2].word[i % 4];
    pair = scaled_to_f16(pair, power.factor);
  }
}
// All three, of a whole row.
template <int n>
PAGODA_DEVICE RowPower convert_to_f16(arch::Words<4> (&row)[n][2]) {
  LargestOfPairs largest;
  add_pairs(row, largest);
  const RowPower power = power_of_row(largest);
  scale_to_f16(power, row);
  return power;
}

}  // namespace pagoda::kernels
