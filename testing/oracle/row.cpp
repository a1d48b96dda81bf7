// The expected row and its limits.
#include "testing/oracle/row.hpp"

#include <algorithm>
#include <cmath>

namespace pagoda::oracle {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kFloatUnit = 0x1p-24;  // half a unit in the last place of fp32, relative

// The rounding errors of a type.
struct Rounding {
  double relative;  // half a unit in the last place
  double absolute;  // half the distance of its subnormal numbers
};

Rounding rounding_of_output(DType dtype) {
  switch (dtype) {
    case DType::kF32: return {kFloatUnit, 1e-38};
    case DType::kF16: return {0x1p-11, 0x1p-25};
    case DType::kBF16: return {0x1p-8, 1e-38};
    case DType::kF8E4M3: return {0x1p-4, 0x1p-10};
  }
  return {0, 0};
}

// The rounding error of a probability relative to that of the largest score. 8-bit probabilities
// are scaled by 2^6, so that small ones do not all become subnormal. Under bf16 queries P is f16
// over e4m3 caches.
Rounding rounding_of_probability(DType dtype) {
  Rounding rounding = rounding_of_output(dtype);
  if (dtype == DType::kF8E4M3) rounding.absolute /= 64;
  if (dtype == DType::kBF16) rounding.absolute = rounding_of_output(DType::kF16).absolute;
  return rounding;
}

// The relative error of an exp: about a unit in the last place of fp32, but 3.1e-6 where P is
// narrow and a polynomial is good enough (softmax/exp2.hpp); ex2.approx has 2 ulp.
double exp_error(DType p) { return p == DType::kF32 ? 4 * kFloatUnit : 0x1p-18; }

// Sums of products in fp32, in any order and with a truncating adder, and the conversion of a
// product to an exponent, lose a few roundings of the terms' magnitude.
constexpr double kRoundingsOfScore = 8;

// The rms error of a score on matrix cores, relative to the terms' magnitude: none beyond fp32's,
// but for e4m3. Hopper aligns the products of an instruction, and the sum so far, to the largest of
// them and keeps about 14 bits. Of 200,000 random scores of 64 to 256 elements added up like that,
// the mean error was 2^-16.5 to 2^-16, the largest 2^-11.7; an H200's LSE were off by up to 2e-4.
double score_error(DType q) { return q == DType::kF8E4M3 ? 0x1p-13 : 0; }

// The mean square of a rounding error relative to its largest, for mantissas that are spread evenly
// over the logarithm: 1/3 * 0.54.
constexpr double kMeanSquare = 0.18;

constexpr double kElementFactor = 1.3;
constexpr double kSigmas = 3;
constexpr double kRowFactor = 2.75;
constexpr double kDominates = 0.9;  // p of a key from which on O is its V but for small changes

double square(double x) { return x * x; }

struct Weights {
  std::vector<double> p;        // normalised
  std::vector<double> rounded;  // the largest error of p by its type
  std::vector<double> fp32;     // the largest error of p by fp32 arithmetic
};

}  // namespace

ExpectedRow expect_row(std::span<const VisibleKey> keys, int32_t dim, Precision precision,
                       double v_scale, double sink) {
  const auto n = static_cast<size_t>(dim);
  ExpectedRow row;
  row.out.assign(n, 0);
  row.element.assign(n, 0);
  double largest = -kInfinity;
  double largest_magnitude = 0;  // of the keys with the largest score
  for (const VisibleKey& key : keys) {
    if (key.score > largest) largest_magnitude = 0;
    if (key.score >= largest) largest_magnitude = std::max(largest_magnitude, key.magnitude);
    largest = std::max(largest, key.score);
  }
  row.row_max = std::max(largest, sink);
  row.lse = row.row_max;
  if (row.row_max == -kInfinity) return row;

  double denominator = std::exp(sink - row.row_max), keys_only = 0;
  double fp32_error = 0, score_variance = 0;  // of the LSE
  for (const VisibleKey& key : keys) keys_only += std::exp(key.score - largest);
  if (!keys.empty()) denominator += keys_only * std::exp(largest - row.row_max);
  row.lse += std::log(denominator);
  const double ulp = 2 * kFloatUnit;
  const double sink_magnitude = sink == -kInfinity ? 0 : std::abs(sink);
  const double score_unit = score_error(precision.p);
  row.row_max_limit = kFloatUnit * kRoundingsOfScore * (largest_magnitude + sink_magnitude) +
                      kSigmas * score_unit * largest_magnitude +
                      4 * ulp * (1 + std::abs(row.row_max));
  row.lse_limit = row.row_max_limit;
  if (keys.empty()) return row;  // O is zero, exactly
  const double count = std::sqrt(static_cast<double>(keys.size()));
  const double exp_loss = exp_error(precision.p);

  const Rounding p_rounding = rounding_of_probability(precision.p);
  const Rounding out_rounding = rounding_of_output(precision.out);
  std::vector<double> random(n), linear(n), fp32(n), of_scores(n);
  std::vector<double> rounded(keys.size());
  const double unit = std::exp(largest - row.row_max) / denominator;  // p of the largest score
  for (size_t j = 0; j < keys.size(); ++j) {
    const VisibleKey& key = keys[j];
    const double p = std::exp(key.score - largest) * unit;
    if (p == 0) continue;
    rounded[j] = std::max(p_rounding.relative * p, p_rounding.absolute * unit) * v_scale;
    const double loss =
        exp_loss + kFloatUnit * (count + kRoundingsOfScore *
                                             (key.magnitude + largest_magnitude + sink_magnitude));
    fp32_error += p * loss;
    const double score_loss = score_unit * key.magnitude;  // rms
    score_variance += square(p * score_loss);
    const double weight = p * v_scale, lost = weight * loss, e = rounded[j];
    for (size_t d = 0; d < n; ++d) {
      const double v = key.value[d];
      row.out[d] += weight * v;
      random[d] += square(e * v);
      linear[d] += e * std::abs(v);
      fp32[d] += lost * std::abs(v);
      of_scores[d] += square(weight * score_loss * v);
    }
  }

  // A rounded sum of denormals may be zero in fp32.
  constexpr double kFloor = 1e-30;
  double spread = 0, fp32_square = 0, norm = 0;
  for (size_t d = 0; d < n; ++d) {
    const double round =
        std::max(out_rounding.relative * std::abs(row.out[d]), out_rounding.absolute);
    row.element[d] =
        kElementFactor * (round + std::min(linear[d], kSigmas * std::sqrt(random[d]))) + fp32[d] +
        kSigmas * std::sqrt(of_scores[d]) + kFloor;
    spread += kMeanSquare * (random[d] + square(round)) + square(fp32[d]);
    fp32_square += square(fp32[d]);
    norm += square(row.out[d]);
  }
  row.spread = std::sqrt(spread / static_cast<double>(n)) + kFloor;
  row.rms = kRowFactor * row.spread;

  if (norm > 0) {
    double variance = 0;
    for (size_t j = 0; j < keys.size(); ++j) {
      if (rounded[j] == 0) continue;
      double along = 0;
      for (size_t d = 0; d < n; ++d) along += keys[j].value[d] * row.out[d];
      variance += square(rounded[j] * along);
    }
    double absolute = 0;
    for (size_t d = 0; d < n; ++d) {
      const double out = std::abs(row.out[d]);
      if (out_rounding.relative * out < out_rounding.absolute)
        absolute += out_rounding.absolute * out;
      variance += square(out_rounding.relative * square(out));
    }
    row.gain_sigma = std::sqrt(kMeanSquare * variance) / norm;
    // Rounding is not unbiased: the larger half of a unit holds fewer of numbers that are spread
    // evenly over the logarithm. To second order.
    row.gain_floor = std::sqrt(fp32_square / norm) +
                     (square(p_rounding.relative) + square(out_rounding.relative)) / 4;
    // Denormals of the output's type: numbers below half of the smallest one all become zero.
    row.gain_floor += absolute / norm;
    // The rows that see little but one key have the same O, and so the same roundings.
    if (unit > kDominates) row.gain_floor += kSigmas * row.gain_sigma;
  }

  // The error of the LSE: that of the sum of p, and that of the logarithm.
  row.lse_limit =
      fp32_error + kSigmas * std::sqrt(score_variance) + 4 * ulp * (1 + std::abs(row.lse));
  return row;
}

}  // namespace pagoda::oracle
