// Prints the engine's decision on every kernel.
#include "cli/explain.hpp"

#include <fmt/format.h>
#include <memory>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/engine_options.hpp"
#include "cli/measure.hpp"
#include "cli/problem_buffers.hpp"
#include "cli/problem_spec.hpp"
#include "cli/terminal.hpp"
#include "pagoda/backend.hpp"

namespace pagoda::cli {
namespace {

struct ExplainOptions {
  RawProblem problem;
  EngineFlags engine;
  bool is_json = false;
};

std::string verdict(const KernelInfo& kernel) {
  if (kernel.is_selected) return "selected";
  return kernel.can_run ? "can run" : "unsupported";
}

void print_plan(const Plan& plan) {
  fmt::print("\nplan: {} work items, {} split rows, {} workspace, {:.3g} GFLOP, {} of K and V\n",
             plan.num_work_items(), plan.num_split_rows(),
             format_bytes(static_cast<double>(plan.workspace_bytes())), plan.flops() * 1e-9,
             format_bytes(plan.kv_bytes()));
}

void print_table(const std::vector<KernelInfo>& list) {
  Table table({{"kernel"}, {"back end"}, {"verdict"}, {"reason"}});
  for (const KernelInfo& kernel : list) {
    const Style style = kernel.is_selected ? Style::kGreen
                        : kernel.can_run   ? Style::kDim
                                           : Style::kYellow;
    table.add({kernel.name, kernel.backend, paint(verdict(kernel), style), kernel.reason});
  }
  table.print();
}

void run_explain(const ExplainOptions& options) {
  const ProblemSpec spec = parse_problem(options.problem);
  const EngineSetup engine(options.engine);
  const ProblemBuffers buffers(spec, /*has_data=*/false);
  const Attention attention = as_seen_by(engine.options().backend, buffers);
  const Result<std::vector<KernelInfo>> list = explain(attention, engine.options());
  if (!list) fail(list.status().message());
  const Result<Plan> planned = plan(attention, engine.options());
  if (options.is_json) {
    nlohmann::ordered_json json = {{"problem", to_json(spec)},
                                   {"kernels", nlohmann::ordered_json::array()}};
    for (const KernelInfo& kernel : *list) {
      json["kernels"].push_back({{"name", kernel.name},
                                 {"backend", kernel.backend},
                                 {"is_selected", kernel.is_selected},
                                 {"can_run", kernel.can_run},
                                 {"reason", kernel.reason}});
    }
    if (planned) {
      json["plan"] = {{"kernel", planned->kernel()},
                      {"work_items", planned->num_work_items()},
                      {"split_rows", planned->num_split_rows()},
                      {"workspace_bytes", planned->workspace_bytes()},
                      {"flops", planned->flops()},
                      {"kv_bytes", planned->kv_bytes()}};
    }
    fmt::print("{}\n", json.dump(2));
  } else {
    fmt::print("{}\n\n", spec.summary());
    print_table(*list);
    if (planned) print_plan(*planned);
  }
  if (!planned) fail(planned.status().message(), kExitFailed);
}

}  // namespace

void add_explain_command(CLI::App& app) {
  auto options = std::make_shared<ExplainOptions>();
  CLI::App* command = app.add_subcommand(
      "explain",
      "List the kernels of a back end, and why each is or is not selected for a problem");
  command->add_flag("--json", options->is_json, "Print one JSON object");
  add_problem_options(*command, options->problem);
  add_engine_options(*command, options->engine);
  command->callback([options] { run_explain(*options); });
}

}  // namespace pagoda::cli
