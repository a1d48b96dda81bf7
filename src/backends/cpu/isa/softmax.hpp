// Online softmax on score tiles, score modifications, and the blend of partial results, over the
// including unit's Vec.
#pragma once

#include <cstdint>

#include "backends/cpu/isa/tile_ops.hpp"

namespace pagoda::cpu {
namespace {

constexpr float kMinusInfinity = -__builtin_inff();
constexpr float kLargestFloat = __FLT_MAX__;

// 2^x for x <= 0, to 2e-7 relative; x is clamped at -126, where 2^x is the smallest normal number.
// Round to the nearest integer by adding 1.5 * 2^23, then a degree-6 polynomial on [-0.5, 0.5]
// (minimax by iteratively reweighted least squares in double precision, constant term 1).
inline Vec exp2_nonpositive(Vec x) {
  x = Vec::max(Vec::set(-126.0F), x);  // operand order: NaN propagates
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
  constexpr int lanes = Vec::kLanes;
  Vec best = Vec::set(kMinusInfinity);
  Vec best2 = best;
  int i = lo / lanes * lanes;
  if (i < lo) {
    best = Vec::max(best, Vec::select(Vec::load(s + i), lo - i, hi - i, kMinusInfinity));
    i += lanes;
  }
  for (; i + 2 * lanes <= hi; i += 2 * lanes) {
    best = Vec::max(best, Vec::load(s + i));
    best2 = Vec::max(best2, Vec::load(s + i + lanes));
  }
  for (; i < hi; i += lanes) {
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

// Columns [begin, end) of one row: probabilities inside [lo, hi), zeros elsewhere. Adds them to
// `sums`, two of them so that additions need not wait for each other.
template <typename Format, bool HasMinusInfinity>
inline void row_probabilities(const float* s, void* p, int begin, int end, int lo, int hi,
                              float scale, float m, Vec* sums) {
  constexpr int lanes = Vec::kLanes;
  const Vec scale_v = Vec::set(scale);
  const Vec minus_m = Vec::set(-m);
  auto probability = [&](int i) __attribute__((always_inline)) {
    const Vec x = Vec::fma(Vec::load(s + i), scale_v, minus_m);
    const Vec e = Format::exp2(x);
    return HasMinusInfinity ? Vec::keep_above(e, x, -126.0F) : e;
  };
  auto edge = [&](int i) __attribute__((always_inline)) {
    if (i + lanes <= lo || i >= hi) return Vec::zero();
    return Vec::keep(probability(i), lo - i, hi - i);
  };
  Vec sum = sums[0];
  Vec sum2 = sums[1];
  auto add = [&](int i, Vec a, Vec b) __attribute__((always_inline)) {
    sum = sum + a;
    sum2 = sum2 + b;
    Format::store(p, i, a, b);
  };
  const int first_full = (lo + 2 * lanes - 1) / (2 * lanes) * (2 * lanes);
  const int last_full = end < hi ? end : hi / (2 * lanes) * (2 * lanes);
  int i = begin;
  for (; i < first_full && i < end; i += 2 * lanes) add(i, edge(i), edge(i + lanes));
  for (; i < last_full; i += 2 * lanes) add(i, probability(i), probability(i + lanes));
  for (; i < end; i += 2 * lanes) add(i, edge(i), edge(i + lanes));
  sums[0] = sum;
  sums[1] = sum2;
}

// The softmax of a tile, row by row, which can pause after any 32 columns, so that it can be
// interleaved with products of the tile unit. Format computes and stores probabilities: exp2(x)
// for x <= 0, kBytes per element, store(p, i, a, b).
template <typename Format>
class Softmax {
 public:
  explicit Softmax(const ScoreTile* tile) : t_(tile) { find_maximum(); }

  [[nodiscard]] int columns_left() const { return (t_->rows - row_) * t_->keys - column_; }

  // `columns`: a multiple of 32.
  __attribute__((always_inline)) void advance(int columns) {
    while (columns > 0 && row_ < t_->rows) {
      if (column_ == 0) begin_row();
      const int left = t_->keys - column_;
      const int end = column_ + (columns < left ? columns : left);
      const int64_t offset = int64_t{row_} * t_->ld;
      const float* s = t_->scores + offset;
      void* p = static_cast<char*>(t_->probs) + offset * Format::kBytes;
      if (t_->has_minus_infinity) {
        row_probabilities<Format, true>(s, p, column_, end, lo_, hi_, scale_, m_, sums_);
      } else {
        row_probabilities<Format, false>(s, p, column_, end, lo_, hi_, scale_, m_, sums_);
      }
      columns -= end - column_;
      column_ = end;
      if (column_ == t_->keys) {
        t_->l[row_] += Vec::sum(sums_[0] + sums_[1]);
        column_ = 0;
        ++row_;
      }
    }
  }

 private:
  // The maximum of the next row is computed ahead, so that no row waits for its own reduction.
  void find_maximum() {
    if (next_ >= t_->rows) return;
    const int lo = t_->lo[next_];
    const int hi = t_->hi[next_];
    const float largest =
        lo < hi ? row_maximum(t_->scores + int64_t{next_} * t_->ld, lo, hi) : kMinusInfinity;
    maximum_ = largest * t_->scale_log2;
    if (largest > kMinusInfinity && maximum_ < -kLargestFloat) maximum_ = -kLargestFloat;
    ++next_;
  }

  // m is the maximum's product with the scale, rounded. Where the rounding is of the size of
  // exponents that 2^x holds, the fused product with the same score is not m any more: the products
  // are made before, with that rounding. A finite score, a bias of -FLT_MAX say, stays finite.
  static constexpr float kLargeExponent = 1 << 24;
  void scale_row_before() {
    float* s = t_->scores + int64_t{row_} * t_->ld;
    const Vec scale = Vec::set(t_->scale_log2);
    for (int i = lo_ / Vec::kLanes * Vec::kLanes; i < hi_; i += Vec::kLanes) {
      const Vec score = Vec::load(s + i);
      const Vec product = score * scale;
      const Vec finite = Vec::max(Vec::set(-kLargestFloat), product);  // NaN propagates
      Vec::pick_above(finite, product, score, kMinusInfinity).store(s + i);
    }
    scale_ = 1;
  }

  // Raises m to the row's maximum and rescales l and o.
  void begin_row() {
    const float old_m = t_->m[row_];
    m_ = maximum_ > old_m ? maximum_ : old_m;
    lo_ = t_->lo[row_];
    hi_ = t_->hi[row_];
    scale_ = t_->scale_log2;
    if (m_ > kLargeExponent || (m_ < -kLargeExponent && m_ > kMinusInfinity)) scale_row_before();
    sums_[0] = sums_[1] = Vec::zero();
    if (m_ == kMinusInfinity) {  // no visible key yet: all probabilities are zero
      if (has_nan(t_->scores + int64_t{row_} * t_->ld, lo_, hi_)) {
        t_->l[row_] = __builtin_nanf("");  // NaN scores must reach the output
      }
      lo_ = hi_ = 0;
    } else if (m_ != old_m) {
      const float alpha = exp2_scalar(old_m - m_);
      t_->l[row_] *= alpha;
      if (!t_->is_first) scale_row(t_->o + int64_t{row_} * t_->ldo, t_->columns, alpha);
      t_->m[row_] = m_;
    }
    find_maximum();
  }

  const ScoreTile* t_;
  int row_ = 0;     // current row
  int column_ = 0;  // next column of row_
  int next_ = 0;    // next row whose maximum is computed
  float maximum_ = kMinusInfinity;
  int lo_ = 0;  // of the current row
  int hi_ = 0;
  float scale_ = 1.0F;
  float m_ = 0.0F;
  Vec sums_[2];
};

template <typename Format>
void softmax_tile(const ScoreTile* t) {
  Softmax<Format> softmax(t);
  softmax.advance(softmax.columns_left());
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
