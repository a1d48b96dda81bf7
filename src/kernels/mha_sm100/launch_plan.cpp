// Chooses schedules and fills in kernel arguments.
#include "kernels/mha_sm100/launch_plan.hpp"

#include <algorithm>

#include "core/int_math.hpp"
#include "kernels/common/schedule_choice.hpp"
#include "kernels/common/work_tile.hpp"
#include "mask/make_expression_mask.hpp"
#include "operand/paged_row_indices.hpp"

namespace pagoda::mha_sm100 {
namespace {

using core::Problem;
using kernels::kShortRows;
using kernels::Schedule;
using kernels::ScheduleChoice;
using kernels::total_rows;

TileConfig tile_of(const Shape& shape, ScoreClass scores) {
  return mha_sm100::tile_of(static_cast<int>(size_bytes(shape.dtype)), shape.depth, scores,
                            shape.ctas);
}

kernels::PackedRows packed_rows(const Problem& p) {
  return kernels::PackedRows::of(p.group, kRows, kHalves, TileConfig::fuses_heads);
}

// Query heads of a work tile: those of one KV head, or, where they exceed the rows of a half, the
// largest divisor that fits.
int32_t tile_heads(const Problem& p) { return packed_rows(p).heads; }
int32_t half_tokens(const Problem& p) { return kRows / tile_heads(p); }

schedule::TileGrid grid_of(const Problem& p, const Launch& launch, int32_t ctas) {
  schedule::TileGrid grid = kernels::tile_grid(p, tile_heads(p), ctas * kHalves * half_tokens(p),
                                               kernels::sm100::kL2Bytes);
  grid.num_splits = launch.num_splits;
  return grid;
}

// Upper bound of the keys that the rows of a work tile see together. A window or chunked mask
// bounds it in a long cache.
int32_t max_visible_keys(const Problem& p, int32_t tile_tokens) {
  const mask::IntervalRule rule = mask::make_expression_mask(p.mask).interval.rule;
  int64_t keys = p.max_seqlen_kv_bound;
  if (rule.left != mask::IntervalRule::kOpen && rule.right != mask::IntervalRule::kOpen) {
    keys = std::min(keys, int64_t{rule.left} + rule.right + tile_tokens);
  }
  if (rule.chunk > 0) {
    const int64_t chunks = core::ceil_div(tile_tokens - 1, rule.chunk) + 1;
    keys = std::min(keys, chunks * rule.chunk);
  }
  return static_cast<int32_t>(keys);
}

Launch tiles_launch(const Problem& p, const TileConfig& tile, const ScheduleChoice& choice,
                    int32_t num_sms) {
  const Schedule schedule = choice.of_tiles(Schedule::kQueue);
  Launch launch{.schedule = schedule};
  const int32_t tiles = grid_of(p, launch, 1).size();
  const int32_t key_tiles = core::ceil_div(max_visible_keys(p, kHalves * half_tokens(p)), tile.BN);
  launch.num_splits = choice.splits(kernels::num_kv_splits(tiles, num_sms, key_tiles), key_tiles);
  const int32_t all = tiles * launch.num_splits;
  launch.ctas = schedule == Schedule::kTransient ? all : std::min(all, num_sms);
  return launch;
}

// Both CTAs of a pair derive their work tiles from the grid, without communication: no queue, no
// stream-K partition, no KV splits.
Launch pairs_launch(const Problem& p, Schedule schedule, int32_t num_sms) {
  Launch launch{.schedule = schedule};
  const int32_t tiles = grid_of(p, launch, 2).size();
  launch.ctas = 2 * (schedule == Schedule::kTransient ? tiles : std::min(tiles, num_sms / 2));
  return launch;
}

Launch shares_launch(const Problem& p, const TileConfig& tile, int32_t num_sms) {
  Launch launch{.schedule = Schedule::kStreamK};
  const kernels::PackedRows packed = packed_rows(p);
  const int64_t most = kernels::max_stream_k_ctas(p, packed.tokens, packed.head_tiles, tile.BN);
  launch.ctas = static_cast<int32_t>(std::min<int64_t>(most, num_sms));
  return launch;
}

bool is_gathered(const Problem& p, const TileConfig& tile) {
  if (p.k.dtype != p.q.dtype || !kernels::is_kv_by_tma(p, tile.BN, tile.swizzle)) return true;
  if (p.kv_kind != core::KVKind::kPaged) return false;
  const int rows = operand::kv_copy_rows(p.page_size, tile.BN);
  return rows != 0 && rows < kernels::sm100::kMinPieceRows;
}

// Slots of partial results; a slot has two blocks of rows.
int64_t num_slots(const Problem& p, const Launch& launch) {
  if (launch.schedule == Schedule::kStreamK) {
    return launch.ctas > 1 ? 2 * int64_t{launch.ctas} : 0;
  }
  return launch.num_splits > 1 ? grid_of(p, launch, 1).size() : 0;
}

}  // namespace

core::Fit fit(const Shape& shape, const Problem& p, const Options& options, std::string* reason) {
  using core::Fit;
  Fit fit = kernels::fit_of(p, shape.dtype, shape.depth, shape.depth, true, reason);
  if (fit != Fit::kServes) return fit;
  const TileConfig tile = tile_of(shape, ScoreClass::kPlain);
  if (tile.ctas == 2) {
    fit = kernels::fit_of_schedule(
        options, {pagoda::Schedule::kTransient, pagoda::Schedule::kPersistent}, reason);
    if (fit == Fit::kServes) fit = kernels::fit_without_splits(options, reason);
    if (fit != Fit::kServes) return fit;
  }
  if (tile.ctas == 2 && is_gathered(p, tile)) {
    return core::unfit(Fit::kFeatures, reason,
                       [] { return "pairs of CTAs load K and V by TMA, which can't move these"; });
  }
  if (total_rows(p) > 0 &&
      !kernels::is_possible(
          kernels::rows_map(p, p.q, p.head_dim_qk, tile_heads(p), half_tokens(p), tile.swizzle))) {
    return core::unfit(Fit::kFeatures, reason,
                       [] { return "TMA can't move queries with these strides"; });
  }
  return Fit::kServes;
}

// CTA pairs: the rule and the default of Modular's FA4 dispatch. They need a grid that fills the
// chip, and are off by default.
std::string ranked_lower_reason(const Shape& shape, const Problem& p, int32_t num_sms) {
  if (shape.ctas == 1) return {};
  const int32_t tiles = grid_of(p, {}, shape.ctas).size(), pairs = num_sms / 2;
  if (tiles <= pairs) {
    return std::to_string(tiles) + " tiles of a pair's rows for " + std::to_string(pairs) +
           " pairs of multiprocessors";
  }
  return "pairs were slower where both were measured (Modular's FA4 on B200): by name only";
}

std::unique_ptr<LaunchPlan> make_plan(const Shape& shape, const Problem& p, int32_t num_sms,
                                      const Options& options) {
  const ScheduleChoice choice = ScheduleChoice::of(options);
  auto plan = std::make_unique<LaunchPlan>();
  plan->shape = &shape;
  plan->scores = kernels::score_class(p);
  plan->is_batch_invariant = !choice.may_split();
  if (total_rows(p) == 0) return plan;  // nothing to write
  const TileConfig tile = tile_of(shape, plan->scores);
  if (tile.ctas == 2) {
    plan->launches[plan->num_launches++] =
        pairs_launch(p, choice.of_tiles(Schedule::kPersistent), num_sms);
    plan->num_work_items = plan->launches[0].ctas;
    return plan;
  }
  plan->is_gathered = is_gathered(p, tile);
  const auto add = [&](const Launch& launch) {
    plan->launches[plan->num_launches++] = launch;
    plan->num_work_items += launch.ctas;
    const int64_t slots = choice.may_split() ? num_slots(p, launch) : 0;
    plan->split.hold(slots * kHalves, kRows, tile.depth);
    if (slots > 0) plan->num_split_rows = total_rows(p) * p.num_q_heads;
  };
  // Without a choice: stream-K for short sequences, a queue for long ones.
  const bool has_tiles =
      choice.allows_tiles() && (!choice.allows_stream_k() || p.max_seqlen_q > kShortRows);
  const bool has_shares =
      choice.allows_stream_k() &&
      (!has_tiles || kernels::may_have_short_rows(p, kShortRows, plan->is_batch_invariant));
  if (has_shares) {
    Launch launch = shares_launch(p, tile, num_sms);
    if (has_tiles) launch.max_rows = kShortRows;
    add(launch);
  }
  if (has_tiles) {
    Launch launch = tiles_launch(p, tile, choice, num_sms);
    launch.min_rows = plan->num_launches > 0 ? kShortRows + 1 : 1;
    add(launch);
  }
  plan->split.finish();
  plan->zeroed_workspace_bytes = plan->split.counter_bytes;
  plan->workspace_bytes = plan->split.bytes();
  return plan;
}

kernels::LaunchArguments make_arguments(const LaunchPlan& plan, const Launch& launch,
                                        const Problem& p, std::span<std::byte> workspace) {
  const TileConfig tile = tile_of(*plan.shape, plan.scores);
  kernels::LaunchArguments result;
  kernels::AttentionArguments& a = result.arguments;
  kernels::set_call(p, a);
  a.is_batch_invariant = plan.is_batch_invariant;
  a.min_rows = launch.min_rows;
  a.max_rows = launch.max_rows;
  a.schedule = launch.schedule;
  a.is_gathered = plan.is_gathered;
  a.grid = grid_of(p, launch, tile.ctas);
  plan.split.set(workspace, a);
  const int32_t heads = tile_heads(p), tokens = half_tokens(p);
  result.q = kernels::rows_map(p, p.q, p.head_dim_qk, heads, tokens, tile.swizzle);
  if (!plan.is_gathered) {
    result.k =
        kernels::kv_map(p, p.k, p.head_dim_qk, tile.k_tiling().k_rows_per_cta(), tile.swizzle);
    result.v = kernels::kv_map(p, p.v, p.head_dim_vo, tile.BN, tile.swizzle);
  }
  // e4m3 queries: O is stored in two passes, with lines of 64 bytes.
  result.out = kernels::rows_map(p, p.out, p.head_dim_vo, heads, tokens,
                                 kernels::sm100::swizzle_of(tile.element_bytes));
  a.is_out_by_tma = kernels::stores_by_tma(p, result.out);
  if (!a.is_out_by_tma) result.out.rank = 0;
  return result;
}

}  // namespace pagoda::mha_sm100
