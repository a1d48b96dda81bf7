// Timing and comparison.
#include "cli/measure.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <random>
#include <utility>

#include "cli/terminal.hpp"
#include "core/element.hpp"
#include "core/problem.hpp"
#include "cpu/reference.hpp"
#include "engine/cost.hpp"
#include "engine/registry.hpp"
#include "engine/validate.hpp"
#include "mirror/arrays.hpp"
#include "mirror/host_space.hpp"

namespace pagoda::cli {
namespace {

using Clock = std::chrono::steady_clock;

double since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

Plan make_plan(const Attention& attention, const Options& options) {
  Result<Plan> planned = pagoda::plan(attention, options);
  if (!planned) fail(planned.status().message());
  return *std::move(planned);
}

// Products of 16-bit values are exact in fp32; what is lost is the rounding of the probabilities
// and of the output (2^-9 for bf16, 2^-12 for fp16), a few of them in the worst element of a row.
double tolerance_of(const ProblemSpec& spec) {
  switch (spec.dtype) {
    case DType::kF32: return 5e-5;
    case DType::kF16: return 4e-3;
    case DType::kBF16:
    case DType::kF8E4M3: return 2e-2;
  }
  return 0;
}

std::optional<mirror::Mirror> mirror_of(core::MemorySpace& space, const ProblemBuffers& buffers) {
  if (space.is_host()) return std::nullopt;
  try {
    return std::optional<mirror::Mirror>(std::in_place, space, buffers.attention());
  } catch (const std::bad_alloc&) {
    fail(fmt::format("the device has no memory for tensors of {}: {} are free",
                     format_bytes(static_cast<double>(buffers.total_bytes())),
                     format_bytes(static_cast<double>(space.free_bytes()))));
  }
}

core::Problem valid_on_host(const ProblemBuffers& buffers) {
  Result<core::Problem> valid = engine::validate(buffers.attention(), {.backend = "reference"});
  if (!valid) fail(valid.status().message());
  return *std::move(valid);
}

bench::Work count_work(const ProblemSpec& spec, const ProblemBuffers& buffers) {
  const engine::Cost cost = engine::cost(valid_on_host(buffers));
  const double flops_a_pair = 2.0 * static_cast<double>(spec.head_dim_qk + spec.vo());
  return {.flops = cost.flops,
          .exponentials = cost.flops / flops_a_pair,
          .bytes = cost.kv_bytes + static_cast<double>(buffers.q_bytes()) +
                   static_cast<double>(buffers.out_bytes()),
          .dtype = spec.dtype == DType::kF32 ? "fp32" : "bf16"};
}

struct SampledRow {
  int32_t sequence;
  int64_t row;
};

std::vector<SampledRow> sample_rows(const core::Problem& problem, int64_t count, uint64_t seed) {
  std::vector<int32_t> nonempty;
  for (int32_t b = 0; b < problem.batch; ++b) {
    if (problem.seqlen_q(b) > 0) nonempty.push_back(b);
  }
  std::vector<SampledRow> rows;
  if (nonempty.empty() || count <= 0) return rows;
  rows.push_back({nonempty.front(), 0});
  if (count > 1) rows.push_back({nonempty.back(), problem.seqlen_q(nonempty.back()) - 1});
  std::mt19937_64 generator(seed + 99);
  while (static_cast<int64_t>(rows.size()) < count) {
    const int32_t b = nonempty[generator() % nonempty.size()];
    rows.push_back(
        {b, static_cast<int64_t>(generator() % static_cast<uint64_t>(problem.seqlen_q(b)))});
  }
  return rows;
}

// NaN and infinity, which no finite tolerance admits, become infinity.
double finite_or_infinity(double value) {
  return std::isfinite(value) ? value : std::numeric_limits<double>::infinity();
}

double error_of_row(const core::Problem& p, const SampledRow& at,
                    const std::vector<double>& expected) {
  double worst = 0;
  const auto dim = static_cast<size_t>(p.head_dim_vo);
  for (int32_t h = 0; h < p.num_q_heads; ++h) {
    const int64_t offset = p.row_offset(p.out, at.sequence, at.row, h);
    const double* row = expected.data() + static_cast<size_t>(h) * dim;
    double scale = 1e-30, difference = 0;
    for (size_t i = 0; i < dim; ++i) {
      scale = std::max(scale, std::abs(row[i]));
      const double got =
          core::load_element(p.out.data, p.out.dtype, offset + static_cast<int64_t>(i));
      difference = std::max(difference, finite_or_infinity(std::abs(got - row[i])));
    }
    worst = std::max(worst, difference / scale);
  }
  return worst;
}

double error_of_lse(const core::Problem& p, const SampledRow& at,
                    const std::vector<double>& expected) {
  double worst = 0;
  for (int32_t h = 0; h < p.num_q_heads; ++h) {
    const double got =
        core::load_element(p.lse.data, DType::kF32, p.row_offset(p.lse, at.sequence, at.row, h));
    const double wanted = expected[static_cast<size_t>(h)];
    if (std::isinf(wanted) && got == wanted) continue;
    worst = std::max(worst, finite_or_infinity(std::abs(got - wanted)));
  }
  return worst;
}

}  // namespace

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const size_t middle = values.size() / 2;
  std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(middle), values.end());
  if (values.size() % 2 == 1) return values[middle];
  const double upper = values[middle];
  return (*std::max_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(middle)) +
          upper) /
         2;
}

Attention as_seen_by(const std::string& backend, const ProblemBuffers& buffers) {
  Attention attention = buffers.attention();
  const core::Backend* found = engine::find_backend(backend);
  if (found == nullptr || found->memory == DeviceType::kCpu) return attention;
  mirror::replace_arrays(attention, {found->memory, 0},
                         [](const mirror::Array& array) { return array.data; });
  return attention;
}

std::string refusal(const ProblemSpec& spec, const Options& options) {
  const ProblemBuffers buffers(spec, /*has_data=*/false);
  return pagoda::plan(as_seen_by(options.backend, buffers), options).status().message();
}

PlannedProblem::PlannedProblem(const ProblemSpec& spec, const Options& options)
    : spec_(spec),
      space_(mirror::space_of(options.backend)),
      buffers_(spec, /*has_data=*/true),
      mirror_(mirror_of(space_, buffers_)),
      plan_(make_plan(attention(), options)),
      work_(count_work(spec, buffers_)) {
  plan_with(options);
}

const Attention& PlannedProblem::attention() {
  return mirror_ ? mirror_->attention() : buffers_.attention();
}

void PlannedProblem::plan_with(const Options& options) {
  options_ = options;
  plan_ = make_plan(attention(), options);
  const int64_t bytes = plan_.workspace_bytes();
  if (!space_.is_host()) {
    if (bytes > device_workspace_.bytes()) device_workspace_ = mirror::Block(space_, bytes);
    space_.fill(device_workspace_.data(), std::byte{0}, plan_.zeroed_workspace_bytes());
    return;
  }
  if (bytes > host_workspace_.bytes()) {
    host_workspace_ = bench::Buffer(bytes);
    if (host_workspace_.data() == nullptr) {
      fail(fmt::format("no memory for a workspace of {} bytes", bytes));
    }
  }
  std::fill_n(host_workspace_.data(), plan_.zeroed_workspace_bytes(), std::byte{0});
}

void PlannedProblem::poison_outputs() {
  buffers_.poison_outputs();
  if (mirror_) mirror_->send_outputs();
}

void PlannedProblem::launch() {
  const auto workspace = space_.is_host() ? host_workspace_.span() : device_workspace_.span();
  if (const Status s = pagoda::run(plan_, attention(), workspace); !s) {
    fail(s.message(), kExitFailed);
  }
}

double PlannedProblem::run_once() {
  const auto start = Clock::now();
  launch();
  space_.wait();
  const double seconds = since(start);
  if (mirror_) mirror_->fetch_outputs();
  return seconds;
}

std::vector<double> PlannedProblem::time_runs(int64_t iterations) {
  return space_.time(iterations, [&] { launch(); });
}

double PlannedProblem::time_back_to_back(int64_t iterations) {
  space_.wait();
  const auto start = Clock::now();
  for (int64_t i = 0; i < iterations; ++i) launch();
  space_.wait();
  return since(start) / static_cast<double>(std::max<int64_t>(iterations, 1));
}

std::vector<double> PlannedProblem::time_plans(int64_t iterations) {
  std::vector<double> seconds;
  for (int64_t i = 0; i < iterations; ++i) {
    const auto start = Clock::now();
    const Result<Plan> planned = pagoda::plan(attention(), options_);
    seconds.push_back(since(start));
    if (!planned) fail(planned.status().message(), kExitFailed);
  }
  return seconds;
}

ErrorReport compare_with_reference(const ProblemSpec& spec, const ProblemBuffers& buffers,
                                   int64_t rows) {
  ErrorReport report{.tolerance = tolerance_of(spec)};
  const core::Problem problem = valid_on_host(buffers);
  const auto heads = static_cast<size_t>(problem.num_q_heads);
  std::vector<double> out(heads * static_cast<size_t>(problem.head_dim_vo)), lse(heads);
  for (const SampledRow& at : sample_rows(problem, rows, spec.seed)) {
    cpu::reference_row(problem, at.sequence, at.row, out.data(), lse.data(), nullptr);
    report.max_relative = std::max(report.max_relative, error_of_row(problem, at, out));
    if (problem.lse.data != nullptr) {
      report.max_lse = std::max(report.max_lse, error_of_lse(problem, at, lse));
    }
    ++report.rows;
  }
  return report;
}

}  // namespace pagoda::cli
