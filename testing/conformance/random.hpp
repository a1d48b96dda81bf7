// Random numbers for the test data: SplitMix64 (Steele et al. 2014), the same on every machine.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
#include <string_view>

namespace pagoda::conformance {

class Random {
 public:
  // FNV-1a of the text, mixed with a number.
  explicit Random(std::string_view seed, uint64_t salt = 0) {
    for (const char c : seed) state_ = (state_ ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
    state_ ^= salt * 0x9e3779b97f4a7c15U;
    next();
  }
  uint64_t next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15U);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
  }
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }  // [0, 1)
  int64_t below(int64_t n) { return static_cast<int64_t>(next() % static_cast<uint64_t>(n)); }
  float normal() {
    if (has_spare_) {
      has_spare_ = false;
      return spare_;
    }
    const double radius = std::sqrt(-2 * std::log(1 - uniform()));
    const double angle = 2 * std::numbers::pi * uniform();
    spare_ = static_cast<float>(radius * std::sin(angle));
    has_spare_ = true;
    return static_cast<float>(radius * std::cos(angle));
  }

 private:
  uint64_t state_ = 0xcbf29ce484222325U;
  float spare_ = 0;
  bool has_spare_ = false;
};

}  // namespace pagoda::conformance
