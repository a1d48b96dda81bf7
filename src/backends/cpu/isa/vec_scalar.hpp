// Vec for any processor: four floats by the compiler's vector extension (SSE2 on x86-64, NEON on
// Arm). Included by scalar.cpp only.
#pragma once

#include <cstdint>
#include <cstring>

namespace pagoda::cpu {
namespace {

struct Vec {
  static constexpr int kLanes = 4;
  using Floats __attribute__((vector_size(16))) = float;
  using Ints __attribute__((vector_size(16))) = int32_t;
  using Bits __attribute__((vector_size(16))) = uint32_t;
  Floats v;

  static Vec zero() { return {Floats{0, 0, 0, 0}}; }
  static Vec set(float x) { return {Floats{x, x, x, x}}; }
  static Vec load(const float* p) {
    Vec r;
    std::memcpy(&r.v, p, sizeof r.v);
    return r;
  }
  void store(float* p) const { std::memcpy(p, &v, sizeof v); }
  // Lanes [0, n) of p; the others are 0.
  static Vec load_first(const float* p, int n) {
    Vec r = zero();
    for (int i = 0; i < n; ++i) r.v[i] = p[i];
    return r;
  }
  // Keeps lanes [lo, hi), the others become 0.
  static Vec keep(Vec x, int lo, int hi) {
    for (int i = 0; i < kLanes; ++i) x.v[i] = (i >= lo && i < hi) ? x.v[i] : 0.0F;
    return x;
  }
  // Keeps lanes [lo, hi), the others become `other`.
  static Vec select(Vec x, int lo, int hi, float other) {
    for (int i = 0; i < kLanes; ++i) x.v[i] = (i >= lo && i < hi) ? x.v[i] : other;
    return x;
  }
  // x where gate > limit, 0 elsewhere (NaN in gate keeps x: it must reach the result).
  static Vec keep_above(Vec x, Vec gate, float limit) {
    const Ints drop = gate.v <= Floats{limit, limit, limit, limit};
    return {reinterpret_cast<Floats>(reinterpret_cast<Ints>(x.v) & ~drop)};
  }
  static Vec iota() { return {Floats{0, 1, 2, 3}}; }

  friend Vec operator+(Vec a, Vec b) { return {a.v + b.v}; }
  friend Vec operator-(Vec a, Vec b) { return {a.v - b.v}; }
  friend Vec operator*(Vec a, Vec b) { return {a.v * b.v}; }
  friend Vec operator/(Vec a, Vec b) { return {a.v / b.v}; }
  static Vec fma(Vec a, Vec b, Vec c) { return {a.v * b.v + c.v}; }
  // The second operand where either is NaN, as x86 does.
  static Vec max(Vec a, Vec b) {
    const Ints greater = a.v > b.v;
    return {reinterpret_cast<Floats>((reinterpret_cast<Ints>(a.v) & greater) |
                                     (reinterpret_cast<Ints>(b.v) & ~greater))};
  }
  static Vec min(Vec a, Vec b) {
    const Ints less = a.v < b.v;
    return {reinterpret_cast<Floats>((reinterpret_cast<Ints>(a.v) & less) |
                                     (reinterpret_cast<Ints>(b.v) & ~less))};
  }
  // x * 2^n where n is the integer in the low mantissa bits of `magic`; x * 2^n must be normal.
  static Vec scale_by_exponent(Vec x, Vec magic) {
    // Unsigned: lanes whose result is discarded may overflow.
    const auto n = reinterpret_cast<Bits>(magic.v) << 23;
    return {reinterpret_cast<Floats>(reinterpret_cast<Bits>(x.v) + n)};
  }
  // a where gate > limit, b elsewhere; magnitude with the sign of s.
  static Vec pick_above(Vec a, Vec b, Vec gate, float limit) {
    const Ints above = gate.v > Floats{limit, limit, limit, limit};
    return {reinterpret_cast<Floats>((reinterpret_cast<Ints>(a.v) & above) |
                                     (reinterpret_cast<Ints>(b.v) & ~above))};
  }
  static Vec copy_sign(Vec magnitude, Vec s) {
    const Ints sign = {INT32_MIN, INT32_MIN, INT32_MIN, INT32_MIN};
    return {reinterpret_cast<Floats>((reinterpret_cast<Ints>(magnitude.v) & ~sign) |
                                     (reinterpret_cast<Ints>(s.v) & sign))};
  }
  // Lane i = the sum of x[i].
  static Vec sums(const Vec* x) {
    Vec r;
    for (int i = 0; i < kLanes; ++i) r.v[i] = sum(x[i]);
    return r;
  }
  static float sum(Vec x) { return (x.v[0] + x.v[1]) + (x.v[2] + x.v[3]); }
  static float maximum(Vec x) {
    float m = x.v[0];
    for (int i = 1; i < kLanes; ++i) m = m > x.v[i] ? m : x.v[i];
    return m;
  }
};

}  // namespace
}  // namespace pagoda::cpu
