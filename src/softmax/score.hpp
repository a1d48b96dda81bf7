// The score of a product q.k, in log2 units: scale, soft cap, ALiBi, in the order of the API:
//   s = scale * q.k;  s = softcap * tanh(s / softcap);  s += slope * (k - q);  s *= log2 e
#pragma once

#include <cmath>
#include <cstdint>

#include "core/target.hpp"
#include "softmax/online.hpp"
#include "softmax/tanh.hpp"

namespace pagoda::softmax {

// Constants of a kernel launch. Linear without a soft cap: then a kernel takes the maximum of the
// unscaled products (scale > 0) and folds `scale_log2` into the FMA before its exp2.
struct ScoreMap {
  float scale_log2 = 1;     // linear: factor; soft cap: cap * log2 e, outside the tanh
  float inverse_range = 0;  // soft cap: scale / cap, inside the tanh; 0 = linear

  [[nodiscard]] PAGODA_HOST_DEVICE bool is_linear() const { return inverse_range == 0; }
  // The map of products that are smaller by `factor`.
  [[nodiscard]] PAGODA_HOST_DEVICE ScoreMap scaled(float factor) const {
    return is_linear() ? ScoreMap{scale_log2 * factor, 0}
                       : ScoreMap{scale_log2, inverse_range * factor};
  }
  // Score without ALiBi, log2 units.
  [[nodiscard]] PAGODA_DEVICE float operator()(float product) const {
    return is_linear() ? product * scale_log2 : capped(product);
  }
  // The same where it is known that the map is not linear.
  [[nodiscard]] PAGODA_DEVICE float capped(float product) const {
    return scale_log2 * tanh_approx(product * inverse_range);
  }
};

// softcap 0 = off, otherwise > 0. A scale of 0 under a soft cap gives a constant score of 0.
[[nodiscard]] PAGODA_HOST_DEVICE ScoreMap score_map(float scale, float softcap) {
  if (softcap == 0 || scale == 0) return {scale * kLog2e, 0};
  return {softcap * kLog2e, scale / softcap};
}

// Slope of head h of num_heads (Press et al. 2022, section 3): 2^(-8 (h + 1) / num_heads) for a
// power of two; otherwise the slopes of the power of two below, then every other one of its double.
[[nodiscard]] PAGODA_HOST_DEVICE float alibi_slope(int32_t head, int32_t num_heads) {
  int32_t power = 1;
  while (power <= num_heads / 2) power *= 2;
  if (head < power) {
    return ::exp2f(-8.0F * static_cast<float>(head + 1) / static_cast<float>(power));
  }
  return ::exp2f(-4.0F * static_cast<float>(2 * (head - power) + 1) / static_cast<float>(power));
}

// Bias of a key at distance key - position, log2 units; slope_log2 = slope * log2 e.
[[nodiscard]] PAGODA_HOST_DEVICE float alibi_bias(float slope_log2, int32_t key, int32_t position) {
  return slope_log2 * static_cast<float>(key - position);
}

}  // namespace pagoda::softmax
