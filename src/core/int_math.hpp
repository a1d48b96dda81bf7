// Integer arithmetic that attention needs everywhere, on host and device.
#pragma once

#include <concepts>

#include "core/target.hpp"

namespace pagoda::core {

template <std::integral T>
[[nodiscard]] PAGODA_HOST_DEVICE constexpr T ceil_div(T a, T b) {
  return (a + b - 1) / b;
}
template <std::integral T>
[[nodiscard]] PAGODA_HOST_DEVICE constexpr T align_up(T a, T b) {
  return ceil_div(a, b) * b;
}
template <std::integral T>
[[nodiscard]] PAGODA_HOST_DEVICE constexpr T align_down(T a, T b) {
  return a / b * b;
}
// Rounds towards minus infinity; b > 0.
template <std::integral T>
[[nodiscard]] PAGODA_HOST_DEVICE constexpr T floor_div(T a, T b) {
  return a / b - ((a % b != 0 && a < 0) ? 1 : 0);
}

}  // namespace pagoda::core
