// The worker loop.
#include "cli/bench_worker.hpp"

#include <fmt/format.h>
#include <iostream>
#include <memory>

#include <nlohmann/json.hpp>

#include "bench/pinned_pool.hpp"
#include "bench/roofline.hpp"
#include "cli/engine_options.hpp"
#include "cli/json_io.hpp"
#include "cli/measure.hpp"
#include "cli/terminal.hpp"
#include "pagoda/backend.hpp"

namespace pagoda::cli {
namespace {

using Json = nlohmann::ordered_json;
constexpr int64_t kRowsChecked = 2;

class Worker {
 public:
  explicit Worker(std::string backend) : backend_(std::move(backend)) {}

  Json answer(const nlohmann::json& request) {
    const std::string op = request.value("op", "");
    if (op == "prepare") return prepare(request);
    if (op == "ceilings") return measure(request);
    if (op == "release") {
      problem_.reset();
      return {{"ok", true}};
    }
    const int64_t iterations = request.value("iterations", int64_t{1});
    const bool is_known = op == "run" || op == "plan" || op == "back_to_back";
    if (!is_known) return {{"error", "op: no such operation: '" + op + "'"}};
    if (!problem_) return {{"error", "op: nothing is prepared"}};
    if (op == "back_to_back") {
      return {{"seconds", Json::array({problem_->time_back_to_back(iterations)})}};
    }
    return {{"seconds",
             op == "run" ? problem_->time_runs(iterations) : problem_->time_plans(iterations)}};
  }

 private:
  Json prepare(const nlohmann::json& request) {
    problem_.reset();
    pool_.reset();  // the new one may have another size, and restores the affinity
    pool_ = std::make_unique<bench::PinnedPool>(request.value("threads", 1));
    const ProblemSpec spec = parse_problem_json(request.value("problem", nlohmann::json::object()));
    Options options{.backend = backend_, .kernel = request.value("kernel", "")};
    options.schedule = parse_schedule("schedule", request.value("schedule", "automatic"));
    options.num_kv_splits = request.value("kv-splits", 0);
    options.executor = pool_.get();
    if (std::string why = rejection_reason(spec, options); !why.empty()) return {{"error", why}};
    problem_ = std::make_unique<PlannedProblem>(spec, options);
    problem_->run_once();
    const ErrorReport error = compare_with_reference(spec, problem_->buffers(), kRowsChecked);
    const bench::Work work = problem_->work();
    const bench::Bound bound = bench::roofline(ceilings_, work, cpu_isa_level(), pool_->workers());
    return {{"kernel", problem_->plan().kernel()},
            {"isa", cpu_isa_level()},
            {"flops", work.flops},
            {"bytes", work.bytes},
            {"workspace_bytes", problem_->plan().workspace_bytes()},
            {"max_relative_error", error.max_relative},
            {"passed", error.passes()},
            {"roofline_seconds", bound.seconds},
            {"bound_by", bound.limit}};
  }

  Json measure(const nlohmann::json& request) {
    problem_.reset();
    pool_.reset();
    ceilings_ = bench::measure_ceilings(request.value("threads", 1));
    return to_json(ceilings_);
  }

  std::string backend_;
  bench::Ceilings ceilings_;
  std::unique_ptr<bench::PinnedPool> pool_;
  std::unique_ptr<PlannedProblem> problem_;
};

}  // namespace

void run_bench_worker(const std::string& backend) {
  Worker worker(backend);
  for (std::string line; std::getline(std::cin, line);) {
    const nlohmann::json request = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    Json reply;
    if (!request.is_object()) {
      reply = {{"error", "the line is not a JSON object"}};
    } else {
      try {
        reply = worker.answer(request);
      } catch (const nlohmann::json::exception& error) {
        reply = {{"error", error.what()}};
      }
    }
    fmt::print("{}\n", reply.dump());
    std::fflush(stdout);
  }
}

}  // namespace pagoda::cli
