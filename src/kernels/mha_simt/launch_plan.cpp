// Chooses row tiles and KV splits for a call and sets its arguments.
#include "kernels/mha_simt/launch_plan.hpp"

#include "core/int_math.hpp"
#include "kernels/common/schedule_choice.hpp"

namespace pagoda::mha_simt {
namespace {

using core::Problem;

constexpr int32_t kCtasPerSm = 3;                // that the model of num_kv_splits counts on
constexpr int64_t kL2Bytes = int64_t{32} << 20;  // K and V of a section of TileGrid; not measured

schedule::TileGrid grid_of(const Problem& p, const LaunchPlan& plan) {
  schedule::TileGrid grid = kernels::tile_grid(p, plan.packed.heads, plan.packed.tokens, kL2Bytes);
  grid.num_splits = plan.num_splits;
  return grid;
}

}  // namespace

core::Fit fit(const Shape& shape, const Problem& p, const Options& options, std::string* reason) {
  const core::Fit fit = kernels::fit_of_features(p, shape.depth_qk, shape.depth_vo, reason);
  if (fit != core::Fit::kServes) return fit;
  return kernels::fit_of_schedule(options, {pagoda::Schedule::kTransient}, reason);
}

std::unique_ptr<LaunchPlan> make_plan(const Shape& shape, const Problem& p, int32_t num_sms,
                                      const Options& options) {
  const auto choice = kernels::ScheduleChoice::of(options);
  auto plan = std::make_unique<LaunchPlan>();
  plan->is_batch_invariant = !choice.may_split();
  if (p.batch == 0 || kernels::total_rows(p) == 0) return plan;  // nothing to write
  plan->packed = kernels::PackedRows::of(p.group, shape.BM, 1, true);
  constexpr int32_t kKeys = TileConfig::kWarps * TileConfig::BN;  // one KV tile of each warp
  const int32_t automatic =
      kernels::num_kv_splits(p, grid_of(p, *plan), num_sms * kCtasPerSm, kKeys);
  plan->num_splits =
      choice.splits(automatic, core::ceil_div(p.max_seqlen_kv_bound, TileConfig::BN));
  plan->ctas = grid_of(p, *plan).size();
  plan->num_work_items = plan->ctas;
  if (plan->num_splits > 1) {
    plan->split.hold(plan->ctas, shape.BM, shape.depth_vo);
    plan->num_split_rows = kernels::total_rows(p) * p.num_q_heads;
  }
  plan->split.finish();
  plan->zeroed_workspace_bytes = plan->split.counter_bytes;
  plan->workspace_bytes = plan->split.bytes();
  return plan;
}

kernels::LaunchArguments make_arguments(const LaunchPlan& plan, const Problem& p,
                                        std::span<std::byte> workspace) {
  kernels::LaunchArguments result;
  kernels::AttentionArguments& a = result.arguments;
  kernels::set_call(p, a);
  a.is_batch_invariant = plan.is_batch_invariant;
  a.schedule = kernels::Schedule::kTransient;
  a.grid = grid_of(p, plan);
  plan.split.set(workspace, a);
  return result;
}

}  // namespace pagoda::mha_simt
