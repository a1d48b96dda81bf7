// Errors divided by their limits, and the messages about exceeded limits.
#include "testing/oracle/comparison.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <initializer_list>

namespace pagoda::oracle {
namespace {

constexpr double kGainSigmas = 6;

// Equal infinities agree; NaN agrees with nothing.
double distance(double a, double b) {
  if (a == b) return 0;
  const double d = std::abs(a - b);
  return std::isnan(d) ? std::numeric_limits<double>::infinity() : d;
}

}  // namespace

double Shares::worst() const { return std::max({element, row_rms, lse, row_max, case_rms, gain}); }

void Comparison::judge(double& worst, double error, double limit, const char* what,
                       const RowLabel* label, double got, double want, int32_t element) {
  ++checked_;
  const double share = error == 0 ? 0 : error / limit;  // infinite where the limit is 0
  worst = std::max(worst, share);
  if (error <= limit) return;
  if (++mismatches_ > 1) return;
  char text[256], where[96] = "the case", index[16] = "";
  if (element >= 0) std::snprintf(index, sizeof index, "[%d]", element);
  if (label != nullptr) {
    std::snprintf(where, sizeof where, "sequence %d, row %lld, head %d", label->sequence,
                  static_cast<long long>(label->row), label->head);
  }
  std::snprintf(text, sizeof text, "%s%s of %s is %.9g, want %.9g: error %.3g, limit %.3g", what,
                index, where, got, want, error, limit);
  message_ = text;
}

void Comparison::add(const ExpectedRow& expected, const RowLabel& label, std::span<const float> out,
                     const float* lse, const float* row_max) {
  add_row(expected, label, out);
  const auto statistic = [&](double& worst, const char* what, const float* value, double want,
                             double limit) {
    if (value == nullptr) return;
    const auto got = static_cast<double>(*value);
    judge(worst, distance(got, want), std::isinf(want) ? 0 : limit, what, &label, got, want);
  };
  statistic(shares_.lse, "lse", lse, expected.lse, expected.lse_limit);
  statistic(shares_.row_max, "row_max", row_max, expected.row_max, expected.row_max_limit);
}

void Comparison::add_row(const ExpectedRow& expected, const RowLabel& label,
                         std::span<const float> out) {
  double squares = 0, along = 0, norm = 0, largest = 0, worst = 0;
  for (size_t d = 0; d < expected.out.size(); ++d) {
    const auto got = static_cast<double>(out[d]);
    const double want = expected.out[d], error = distance(got, want);
    judge(shares_.element, error, expected.element[d], "out", &label, got, want,
          static_cast<int32_t>(d));
    squares += error * error;
    along += (got - want) * want;
    norm += want * want;
    largest = std::max(largest, std::abs(want));
    worst = std::max(worst, error);
  }
  if (worst > 0) {
    max_relative_error_ =
        std::max(max_relative_error_,
                 largest > 0 ? worst / largest : std::numeric_limits<double>::infinity());
  }
  if (expected.spread == 0) return;  // no key: every element must be 0
  const double rms = std::sqrt(squares / static_cast<double>(expected.out.size()));
  judge(shares_.row_rms, rms, expected.rms, "the rms error", &label, rms, 0);
  squares_ += (rms / expected.spread) * (rms / expected.spread);
  ++rows_;
  if (norm == 0) return;
  const double variance =
      expected.gain_sigma * expected.gain_sigma + expected.gain_floor * expected.gain_floor;
  gain_ += along / norm / variance;
  gain_weight_ += 1 / variance;
  gain_floor_ += expected.gain_floor / variance;
}

void Comparison::finish() {
  if (rows_ > 0) {
    const double limit = std::sqrt(1.5 + 12 / std::sqrt(rows_)),
                 ratio = std::sqrt(squares_ / rows_);
    judge(shares_.case_rms, ratio, limit, "the rms error as a multiple of what rounding leaves",
          nullptr, ratio, 1);
  }
  if (gain_weight_ > 0) {
    const double gain = gain_ / gain_weight_;
    const double limit = kGainSigmas / std::sqrt(gain_weight_) + gain_floor_ / gain_weight_;
    judge(shares_.gain, distance(gain, 0), limit, "the factor (got - want) / want", nullptr, gain,
          0);
  }
}

}  // namespace pagoda::oracle
