// The two host back ends as core::Backend.
#include "backends/cpu/backend.hpp"

#include <memory>

#include "backends/cpu/append_kv.hpp"
#include "backends/cpu/kernels.hpp"
#include "backends/cpu/merge_states.hpp"
#include "backends/cpu/padding_rows.hpp"
#include "backends/cpu/reference.hpp"
#include "pagoda/backend.hpp"

namespace pagoda::cpu {
namespace {

constexpr core::Kernel kReference{
    .name = "reference",
    .backend = "reference",
    .fit =
        [](const core::Kernel&, const core::Problem&, const Options& options, std::string* reason) {
          if (options.schedule == Schedule::kAutomatic && options.num_kv_splits <= 1) {
            return core::Fit::kServes;
          }
          return core::unfit(core::Fit::kFeatures, reason,
                             [] { return "the reference has no schedule and splits no keys"; });
        },
    .plan = [](const core::Kernel&, const core::Problem&,
               const Options&) -> Result<std::unique_ptr<core::KernelPlan>> {
      auto plan = std::make_unique<core::KernelPlan>();
      plan->num_work_items = 1;
      return plan;
    },
    .run = [](const core::Kernel&, const core::KernelPlan&, const core::Problem& problem,
              std::span<std::byte>, const core::RunContext&) { reference_attention(problem); }};

Status append(const AppendKV& call, const core::RunContext& context) {
  append_kv(call, *context.executor);
  return {};
}
Status merge(const MergeStates& call, const core::RunContext& context) {
  merge_states(call, *context.executor);
  return {};
}
void zero_rows(const core::Problem& problem, const core::RunContext& /*context*/) {
  zero_padding_rows(problem);
}

}  // namespace

const core::Backend& backend() {
  static constexpr core::Backend kBackend{
      .name = "cpu",
      .kernels = kernels,
      .description = [] { return "tiled kernels, up to " + cpu_isa_level() + " on this machine"; },
      .check_environment = check_cpu_isa,
      .append_kv = append,
      .merge_states = merge,
      .zero_padding_rows = zero_rows};
  return kBackend;
}

const core::Backend& reference_backend() {
  static constexpr core::Backend kBackend{
      .name = "reference",
      .kernels = [] { return std::span<const core::Kernel>(&kReference, 1); },
      .description =
          [] { return std::string("the definition: naive, double precision, one thread"); },
      .append_kv = append,
      .merge_states = merge,
      .zero_padding_rows = zero_rows};
  return kBackend;
}

}  // namespace pagoda::cpu
