// Chooses schedules and KV splits.
#include "kernels/common/sm100/launches.hpp"

#include <algorithm>

#include "core/int_math.hpp"
#include "kernels/common/schedule_choice.hpp"
#include "kernels/common/sm100/limits.hpp"

namespace pagoda::kernels::sm100 {
namespace {

using core::Problem;

Launch tiles_launch(const Problem& p, const WorkTileShape& tile, const ScheduleChoice& choice,
                    int32_t num_sms) {
  Launch launch{.schedule = choice.of_tiles(Schedule::kQueue)};
  const schedule::TileGrid grid = tile.grid(p);
  const int32_t groups = tile.groups(num_sms);
  launch.num_splits = choice.splits(num_kv_splits(p, grid, groups, tile.BN),
                                    core::ceil_div(max_visible_keys(p, grid.tile_rows), tile.BN));
  const int32_t all = grid.size() * launch.num_splits;
  launch.ctas = tile.ctas * (launch.schedule == Schedule::kTransient ? all : std::min(all, groups));
  return launch;
}

Launch stream_k_launch(const Problem& p, const WorkTileShape& tile, int32_t num_sms) {
  const PackedRows packed = tile.packed_rows(p);
  const int64_t most = max_stream_k_ctas(p, packed.tokens, packed.head_tiles, tile.BN);
  const auto groups = static_cast<int32_t>(std::min<int64_t>(most, tile.groups(num_sms)));
  return {.schedule = Schedule::kStreamK, .ctas = tile.ctas * groups};
}

// Slots of partial results.
int64_t num_slots(const Problem& p, const WorkTileShape& tile, const Launch& launch) {
  if (launch.schedule == Schedule::kStreamK) {
    const int32_t groups = launch.ctas / tile.ctas;
    return groups > 1 ? 2 * int64_t{groups} : 0;
  }
  return launch.num_splits > 1 ? tile.grid(p, launch.num_splits).size() : 0;
}

}  // namespace

schedule::TileGrid WorkTileShape::grid(const Problem& p, int32_t num_splits) const {
  const PackedRows packed = packed_rows(p);
  schedule::TileGrid grid = tile_grid(p, packed.heads, packed.tokens, kL2Bytes);
  grid.num_splits = num_splits;
  return grid;
}

void plan_launches(const Problem& p, const WorkTileShape& tile, int32_t num_sms,
                   const Options& options, LaunchPlan& plan) {
  const ScheduleChoice choice = ScheduleChoice::of(options);
  plan.is_batch_invariant = !choice.may_split();
  if (p.batch == 0 || total_rows(p) == 0) return;  // nothing to write
  const auto add = [&](const Launch& launch) {
    plan.launches[plan.num_launches++] = launch;
    plan.num_work_items += launch.ctas;
    const int64_t slots = choice.may_split() ? num_slots(p, tile, launch) : 0;
    plan.split.hold(slots * tile.blocks, tile.block_rows, tile.depth);
    if (slots > 0) plan.num_split_rows = total_rows(p) * p.num_q_heads;
  };
  const bool has_tiles =
      choice.allows_tiles() && (!choice.allows_stream_k() || p.max_seqlen_q > kShortRows);
  const bool has_stream_k =
      choice.allows_stream_k() &&
      (!has_tiles || may_have_short_rows(p, kShortRows, plan.is_batch_invariant));
  if (has_stream_k) {
    Launch launch = stream_k_launch(p, tile, num_sms);
    if (has_tiles) launch.max_rows = kShortRows;
    add(launch);
  }
  if (has_tiles) {
    Launch launch = tiles_launch(p, tile, choice, num_sms);
    if (plan.num_launches > 0) launch.min_rows = kShortRows + 1;
    add(launch);
  }
  plan.split.finish();
  plan.zeroed_workspace_bytes = plan.split.counter_bytes;
  plan.workspace_bytes = plan.split.bytes();
}

void set_launch(const Problem& p, const WorkTileShape& tile, const LaunchPlan& plan,
                const Launch& launch, std::span<std::byte> workspace, AttentionArguments& a) {
  set_call(p, a);
  a.is_batch_invariant = plan.is_batch_invariant;
  a.min_rows = launch.min_rows;
  a.max_rows = launch.max_rows;
  a.schedule = launch.schedule;
  a.is_gathered = plan.is_gathered;
  a.grid = tile.grid(p, launch.num_splits);
  a.kv_eviction = kv_eviction(p, tile.packed_rows(p), arch::Eviction::kFirst, launch.max_rows);
  plan.split.set(workspace, a);
}

}  // namespace pagoda::kernels::sm100
