// Timing and comparison.
#include "cli/measure.hpp"

#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <random>
#include <set>
#include <utility>

#include "cli/terminal.hpp"
#include "core/element.hpp"
#include "core/problem.hpp"
#include "engine/cost.hpp"
#include "engine/registry.hpp"
#include "engine/validate.hpp"
#include "testing/mirror/arrays.hpp"
#include "testing/mirror/host_space.hpp"
#include "testing/oracle/comparison.hpp"
#include "testing/oracle/problem_row.hpp"

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
  const auto columns = static_cast<double>(spec.head_dim_qk + spec.vo());
  const double flops_a_pair = 2.0 * columns;
  // V inside K is read with it.
  const double of_kv = spec.is_v_inside_k ? static_cast<double>(spec.head_dim_qk) / columns : 1;
  return {.flops = cost.flops,
          .exponentials = cost.flops / flops_a_pair,
          .bytes = cost.kv_bytes * of_kv + static_cast<double>(buffers.q_bytes()) +
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

// The outputs of one row and head.
struct RowResult {
  std::vector<float> out;
  float lse = 0;
};

RowResult result_of(const core::Problem& p, const SampledRow& at, int32_t head) {
  RowResult result;
  const int64_t offset = p.row_offset(p.out, at.sequence, at.row, head);
  for (int32_t d = 0; d < p.head_dim_vo; ++d) {
    result.out.push_back(core::load_element(p.out.data, p.out.dtype, offset + d));
  }
  if (p.lse.data != nullptr) {
    result.lse =
        core::load_element(p.lse.data, DType::kF32, p.row_offset(p.lse, at.sequence, at.row, head));
  }
  return result;
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

std::string rejection_reason(const ProblemSpec& spec, const Options& options) {
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
  ErrorReport report;
  const core::Problem problem = valid_on_host(buffers);
  const oracle::Precision precision{problem.q.dtype, problem.out.dtype};
  oracle::Comparison comparison;
  std::set<std::pair<int32_t, int64_t>> compared;  // compares no row twice
  for (const SampledRow& at : sample_rows(problem, rows, spec.seed)) {
    ++report.rows;
    if (!compared.emplace(at.sequence, at.row).second) continue;
    int32_t head = 0;
    for (const oracle::ExpectedRow& expected :
         oracle::expect_rows(problem, precision, at.sequence, at.row)) {
      const RowResult got = result_of(problem, at, head);
      comparison.add(expected, {at.sequence, at.row, head}, got.out,
                     problem.lse.data != nullptr ? &got.lse : nullptr);
      ++head;
    }
  }
  comparison.finish();
  report.max_relative = comparison.max_relative_error();
  report.over_limit = comparison.shares().worst();
  report.message = comparison.message();
  return report;
}

}  // namespace pagoda::cli
