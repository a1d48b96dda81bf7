// Expected values, tolerances and the comparison.
#include "expected.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <string>

#include "cpu/reference.hpp"
#include "naive.hpp"

namespace pagoda::conformance {
namespace {

// Why these factors:
// 16-bit: a kernel rounds P and O as the naive computation does, so its error is of the same size,
//   but it rounds P relative to another maximum (a running one, or without the sink) and thus to
//   other neighbours; the worst of many rows then differs by less than 2.
// fp32: the order of the sums differs (blocks, splits, packed lanes), and exp is a polynomial of
//   about one unit in the last place where the naive computation's is correctly rounded.
double factor(DType dtype) { return dtype == DType::kF32 ? 4 : 2; }

// Half a unit in the last place, relative.
double rounding_unit(DType dtype) {
  switch (dtype) {
    case DType::kF32: return 0x1p-24;
    case DType::kF16: return 0x1p-11;
    case DType::kBF16: return 0x1p-8;
    case DType::kF8E4M3: return 0x1p-4;
  }
  return 0;
}

// Below this a type has no precision left: the smallest fp16 subnormal; for the others what a sum
// of probabilities loses when it underflows in fp32.
double absolute_floor(DType dtype) { return dtype == DType::kF16 ? 0x1p-24 : 1e-30; }

double largest(const std::vector<double>& values) {
  double m = 0;
  for (const double value : values) m = std::max(m, std::abs(value));
  return m;
}

// Equal infinities agree; NaN agrees with nothing.
double distance(double a, double b) {
  if (a == b) return 0;
  const double d = std::abs(a - b);
  return std::isnan(d) ? std::numeric_limits<double>::infinity() : d;
}

constexpr double kFloatEpsilon = 0x1p-23;

// LSE and row_max are fp32 whatever the call's type, but where P keeps 8 or 11 bits a kernel may
// use an exp that is good to 20: the measured worst of the bf16 kernels is 1.8e-6 after the sum.
double statistic_unit(DType dtype) { return dtype == DType::kF32 ? kFloatEpsilon : 0x1p-20; }

std::string describe(const std::string& what, const ExpectedHead& head, double got, double want,
                     double error, double limit) {
  char text[256];
  std::snprintf(text, sizeof text,
                "%s of sequence %d, row %d, head %d is %.9g, want %.9g: error %.3g, limit %.3g",
                what.c_str(), head.b, head.row, head.head, got, want, error, limit);
  return text;
}

}  // namespace

Expected compute_expected(const Case& c, const ProblemData& data) {
  const core::Problem& p = data.canonical();
  const DType dtype = c.out_dtype();
  const auto heads = static_cast<size_t>(c.q_heads);
  const auto dim = static_cast<size_t>(c.dim_vo);
  std::vector<double> out(heads * dim), lse(heads), row_max(heads);
  std::vector<float> naive_out(heads * dim), naive_lse(heads), naive_max(heads);
  const double floor = absolute_floor(dtype);
  double worst_ratio = rounding_unit(dtype);
  double worst_statistic = statistic_unit(dtype);

  Expected expected;
  for (int32_t b = 0; b < p.batch; ++b) {
    for (int32_t row = 0; row < data.output_rows(b); ++row) {
      cpu::reference_row(p, b, row, out.data(), lse.data(), row_max.data());
      naive_row(p, {c.q_dtype, dtype}, b, row, naive_out.data(), naive_lse.data(),
                naive_max.data());
      for (size_t h = 0; h < heads; ++h) {
        ExpectedHead& head = expected.heads.emplace_back();
        head.b = b;
        head.row = row;
        head.head = static_cast<int32_t>(h);
        head.out.assign(out.begin() + static_cast<int64_t>(h * dim),
                        out.begin() + static_cast<int64_t>((h + 1) * dim));
        head.lse = lse[h];
        head.row_max = row_max[h];
        const double scale = largest(head.out);
        for (size_t d = 0; d < dim && scale > 0; ++d) {
          const double error =
              distance(static_cast<double>(naive_out[h * dim + d]), head.out[d]) - floor;
          worst_ratio = std::max(worst_ratio, error / scale);
        }
        worst_statistic =
            std::max({worst_statistic, distance(static_cast<double>(naive_lse[h]), head.lse),
                      distance(static_cast<double>(naive_max[h]), head.row_max)});
      }
    }
  }
  expected.tolerance = {factor(dtype) * worst_ratio, floor, 4 * worst_statistic};
  return expected;
}

Comparison compare(const Case& c, const ProblemData& data, const Expected& expected) {
  Comparison result;
  const Tolerance& tolerance = expected.tolerance;
  const auto note = [&](const char* what, const ExpectedHead& head, double got, double want,
                        double limit) {
    const double error = distance(got, want);
    if (error > limit && result.message.empty()) {
      result.message = describe(what, head, got, want, error, limit);
    }
    return error;
  };
  for (const ExpectedHead& head : expected.heads) {
    const double scale = largest(head.out);
    const double limit = scale == 0 ? 0 : tolerance.relative * scale + tolerance.absolute;
    for (size_t d = 0; d < head.out.size(); ++d) {
      const auto got =
          static_cast<double>(data.out(head.b, head.row, head.head, static_cast<int32_t>(d)));
      const double error =
          note(("out[" + std::to_string(d) + "]").c_str(), head, got, head.out[d], limit);
      if (scale > 0) {
        const double ratio = std::max(0.0, error - tolerance.absolute) / scale;
        result.max_relative_error = std::max(result.max_relative_error, ratio);
      } else if (error > 0) {
        result.max_relative_error = std::numeric_limits<double>::infinity();
      }
    }
    if (!c.wants_statistics) continue;
    const auto statistic_limit = [&](double want) {
      return std::isinf(want) ? 0 : tolerance.statistics + 4 * kFloatEpsilon * std::abs(want);
    };
    note("lse", head, static_cast<double>(data.lse(head.b, head.row, head.head)), head.lse,
         statistic_limit(head.lse));
    note("row_max", head, static_cast<double>(data.row_max(head.b, head.row, head.head)),
         head.row_max, statistic_limit(head.row_max));
  }
  return result;
}

}  // namespace pagoda::conformance
