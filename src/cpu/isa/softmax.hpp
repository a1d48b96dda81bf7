// Online softmax on score tiles, score modifications, and the blend of partial results, over the
// including unit's Vec.
#pragma once

#include <cstdint>

#include "cpu/isa/tile_ops.hpp"

namespace pagoda::cpu {
namespace {

constexpr float kMinusInfinity = -__builtin_inff();

// 2^x for x <= 0, to 2e-7 relative; x is clamped at -126, where 2^x is the smallest normal number.
// Round to the nearest integer by adding 1.5 * 2^23, then a degree-6 polynomial on [-0.5, 0.5]
// (minimax by iteratively reweighted least squares in double precision, constant term 1).
inline Vec exp2_nonpositive(Vec x) {
  x = Vec::max(Vec::set(-126.0F), x);  // the constant first: NaN passes
  const Vec magic = x + Vec::set(12582912.0F);
  const Vec f = x - (magic - Vec::set(12582912.0F));
  Vec p = Vec::fma(Vec::set(1.5353362e-4F), f, Vec::set(1.3398874e-3F));
  p = Vec::fma(p, f, Vec::set(9.6184373e-3F));
  p = Vec::fma(p, f, Vec::set(5.5503325e-2F));
  p = Vec::fma(p, f, Vec::set(2.4022648e-1F));
  p = Vec::fma(p, f, Vec::set(6.9314720e-1F));
  p = Vec::fma(p, f, Vec::set(1.0F));
  return Vec::scale_by_exponent(p, magic);
}

inline float exp2_scalar(float x) { return x < -126.0F ? 0.0F : __builtin_exp2f(x); }

inline void scale_row(float* row, int n, float factor) {
  const Vec f = Vec::set(factor);
  for (int i = 0; i < n; i += Vec::kLanes) (Vec::load(row + i) * f).store(row + i);
}

// The largest score of columns [lo, hi), before scaling; -inf where there is none.
inline float row_maximum(const float* s, int lo, int hi) {
  constexpr int L = Vec::kLanes;
  Vec best = Vec::set(kMinusInfinity);
  Vec best2 = best;
  int i = lo / L * L;
  if (i < lo) {
    best = Vec::max(best, Vec::select(Vec::load(s + i), lo - i, hi - i, kMinusInfinity));
    i += L;
  }
  for (; i + 2 * L <= hi; i += 2 * L) {
    best = Vec::max(best, Vec::load(s + i));
    best2 = Vec::max(best2, Vec::load(s + i + L));
  }
  for (; i < hi; i += L) {
    best = Vec::max(best, Vec::select(Vec::load(s + i), 0, hi - i, kMinusInfinity));
  }
  return Vec::maximum(Vec::max(best, best2));
}

inline bool has_nan(const float* s, int lo, int hi) {
  for (int i = lo; i < hi; ++i) {
    if (s[i] != s[i]) return true;
  }
  return false;
}

// One row: probabilities of columns [lo, hi), zeros elsewhere in [0, keys). Returns their sum.
template <typename Format, bool HasMinusInfinity>
inline float row_probabilities(const float* s, void* p, int keys, int lo, int hi, float scale,
                               float m) {
  constexpr int L = Vec::kLanes;
  const Vec scale_v = Vec::set(scale);
  const Vec minus_m = Vec::set(-m);
  auto probability = [&](int i) __attribute__((always_inline)) {
    const Vec x = Vec::fma(Vec::load(s + i), scale_v, minus_m);
    const Vec e = Format::exp2(x);
    return HasMinusInfinity ? Vec::keep_above(e, x, -126.0F) : e;
  };
  auto edge = [&](int i) __attribute__((always_inline)) {
    if (i + L <= lo || i >= hi) return Vec::zero();
    return Vec::keep(probability(i), lo - i, hi - i);
  };
  Vec sum = Vec::zero();
  Vec sum2 = Vec::zero();
  const int first_full = (lo + 2 * L - 1) / (2 * L) * (2 * L);
  const int last_full = hi / (2 * L) * (2 * L);
  int i = 0;
  for (; i < first_full && i < keys; i += 2 * L) {
    const Vec a = edge(i);
    const Vec b = edge(i + L);
    sum = sum + a;
    sum2 = sum2 + b;
    Format::store(p, i, a, b);
  }
  for (; i < last_full; i += 2 * L) {
    const Vec a = probability(i);
    const Vec b = probability(i + L);
    sum = sum + a;
    sum2 = sum2 + b;
    Format::store(p, i, a, b);
  }
  for (; i < keys; i += 2 * L) {
    const Vec a = edge(i);
    const Vec b = edge(i + L);
    sum = sum + a;
    sum2 = sum2 + b;
    Format::store(p, i, a, b);
  }
  return Vec::sum(sum + sum2);
}

// Row r of a tile, once its maximum is known (scaled; -inf where it sees nothing).
template <typename Format>
inline void softmax_row(const ScoreTile* t, int r, float maximum) {
  const float* s = t->scores + static_cast<int64_t>(r) * t->ld;
  char* p = static_cast<char*>(t->probs) + static_cast<int64_t>(r) * t->ld * Format::kBytes;
  const int lo = t->lo[r];
  const int hi = t->hi[r];
  const float old_m = t->m[r];
  const float new_m = maximum > old_m ? maximum : old_m;
  if (new_m == kMinusInfinity) {  // nothing visible yet: all probabilities are zero
    if (has_nan(s, lo, hi)) t->l[r] = __builtin_nanf("");  // bad data must show
    row_probabilities<Format, true>(s, p, t->keys, 0, 0, 1.0F, 0.0F);
    return;
  }
  const float sum =
      t->has_minus_infinity
          ? row_probabilities<Format, true>(s, p, t->keys, lo, hi, t->scale_log2, new_m)
          : row_probabilities<Format, false>(s, p, t->keys, lo, hi, t->scale_log2, new_m);
  if (new_m != old_m) {
    const float alpha = exp2_scalar(old_m - new_m);
    t->l[r] *= alpha;
    if (!t->is_first) scale_row(t->o + static_cast<int64_t>(r) * t->ldo, t->columns, alpha);
    t->m[r] = new_m;
  }
  t->l[r] += sum;
}

// Rows [begin, end). Format says how probabilities are made and stored: exp2(x) for x <= 0,
// kBytes per element, store(p, i, a, b). The maxima come first, so that no row waits for the
// reduction of its own.
template <typename Format>
inline void softmax_rows(const ScoreTile* t, int begin, int end) {
  float maxima[kRowGroup];
  for (int r = begin; r < end; ++r) {
    maxima[r] = t->lo[r] < t->hi[r]
                    ? row_maximum(t->scores + static_cast<int64_t>(r) * t->ld, t->lo[r], t->hi[r]) *
                          t->scale_log2
                    : kMinusInfinity;
  }
  for (int r = begin; r < end; ++r) softmax_row<Format>(t, r, maxima[r]);
}

template <typename Format>
void softmax_tile(const ScoreTile* t) {
  softmax_rows<Format>(t, 0, t->rows);
}

// tanh(x) by e^-2|x|, so that the exponential never overflows; near 0, where 1 - e cancels, by its
// series (the first dropped term is 17 x^7 / 315: below 6e-9 relative at 0.1).
inline Vec tanh_vec(Vec x) {
  const Vec magnitude = Vec::max(Vec::zero() - x, x);
  const Vec e = exp2_nonpositive(magnitude * Vec::set(-2.885390082F));
  const Vec large = (Vec::set(1.0F) - e) / (Vec::set(1.0F) + e);
  const Vec x2 = magnitude * magnitude;
  const Vec series =
      magnitude *
      Vec::fma(x2, Vec::fma(x2, Vec::set(0.13333333F), Vec::set(-0.33333333F)), Vec::set(1.0F));
  return Vec::copy_sign(Vec::pick_above(large, series, magnitude, 0.1F), x);
}

inline void modify_scores(float* s, int n, const ScoreMods* mods) {
  const Vec scale = Vec::set(mods->scale);
  const Vec slope = Vec::set(mods->alibi_slope);
  const bool has_cap = mods->softcap != 0.0F;
  const Vec cap = Vec::set(mods->softcap);
  const Vec inverse_cap = Vec::set(has_cap ? 1.0F / mods->softcap : 0.0F);
  Vec delta = Vec::iota() + Vec::set(mods->first_delta);
  const Vec step = Vec::set(static_cast<float>(Vec::kLanes));
  for (int i = 0; i < n; i += Vec::kLanes) {
    Vec x = Vec::load(s + i) * scale;
    if (has_cap) x = cap * tanh_vec(x * inverse_cap);
    if (mods->alibi_slope != 0.0F) x = Vec::fma(slope, delta, x);
    delta = delta + step;
    x.store(s + i);
  }
}

inline void blend_rows(float* acc, const float* src, int n, float a, float b) {
  const Vec va = Vec::set(a);
  const Vec vb = Vec::set(b);
  for (int i = 0; i < n; i += Vec::kLanes) {
    Vec::fma(Vec::load(acc + i), va, Vec::load(src + i) * vb).store(acc + i);
  }
}

}  // namespace
}  // namespace pagoda::cpu
