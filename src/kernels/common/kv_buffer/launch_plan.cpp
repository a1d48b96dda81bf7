// Chooses the variants for a call and sets their arguments.
#include "kernels/common/kv_buffer/launch_plan.hpp"

#include <algorithm>
#include <stdexcept>

#include "core/int_math.hpp"
#include "kernels/common/schedule_choice.hpp"
#include "kernels/common/work_tile.hpp"
#include "mask/make_expression_mask.hpp"

namespace pagoda::kernels::kv_buffer {
namespace {

using core::Problem;

constexpr int64_t kL2Bytes = 32 << 20;  // K and V of a section of TileGrid; not measured

// cp.async copies 16 bytes from aligned addresses.
bool is_aligned(const core::KVView& view) {
  const auto is_multiple = [](int64_t stride) { return stride % 8 == 0; };
  return reinterpret_cast<uintptr_t>(view.data) % 16 == 0 && is_multiple(view.outer_stride) &&
         is_multiple(view.row_stride) && is_multiple(view.head_stride);
}
// The first of the family's variants, in the order of speed, that serves the call.
size_t variant_index(const Problem& p, const Family& family, RowKind rows) {
  const bool has_same_type = p.k.dtype == p.q.dtype;
  const ScoreClass scores = has_same_type ? score_class(p) : ScoreClass::kGeneral;
  const bool has_aligned_rows = has_same_type && is_aligned(p.k) && is_aligned(p.v);
  const bool has_vectors = has_aligned_rows && p.head_dim_qk % 8 == 0 && p.head_dim_vo % 8 == 0;
  for (const Variant& wanted :
       {Variant{rows, Staging::kAsync, scores}, Variant{rows, Staging::kVectors, scores},
        Variant{rows, Staging::kRegisters, ScoreClass::kGeneral}}) {
    if (wanted.staging == Staging::kAsync && !has_aligned_rows) continue;
    if (wanted.staging == Staging::kVectors && !has_vectors) continue;
    const auto found = std::find(family.variants.begin(), family.variants.end(), wanted);
    if (found != family.variants.end()) return static_cast<size_t>(found - family.variants.begin());
  }
  throw std::logic_error("a family of KVBuffer has no variant for every call");
}

schedule::TileGrid grid_of(const Problem& p, const Launch& launch) {
  schedule::TileGrid grid = tile_grid(p, 1, launch.tile.BM, kL2Bytes);
  grid.num_splits = launch.num_splits;
  return grid;
}

void set_prefill_grid(const Problem& p, int32_t num_sms, const ScheduleChoice& choice,
                      Launch& launch) {
  const int32_t tiles = grid_of(p, launch).size();
  const int32_t key_tiles = core::ceil_div(p.max_seqlen_kv_bound, launch.tile.BN);
  launch.num_splits =
      choice.splits(num_kv_splits(tiles, num_sms * launch.tile.ctas_per_sm, key_tiles), key_tiles);
  launch.ctas = tiles * launch.num_splits;
}

void set_stream_k(const Problem& p, int32_t num_sms, Launch& launch) {
  const PackedRows packed = PackedRows::of(p.group, launch.tile.block_rows);
  const int64_t most = max_stream_k_ctas(p, packed.tokens, packed.head_tiles, launch.tile.BN);
  int64_t ctas = int64_t{num_sms} * launch.tile.ctas_per_sm;
  // Rather two KV tiles a CTA than two CTAs an SM: half the splits to merge.
  if (most <= 2 * int64_t{num_sms}) ctas = num_sms;
  launch.ctas = static_cast<int32_t>(std::min(most, ctas));
}

bool is_token_generation(const Launch& launch) { return launch.rows == RowKind::kTokenGeneration; }

// Blocks of partial results, each of BM rows.
int64_t num_slots(const Problem& p, const Launch& launch, bool splits) {
  if (!splits) return 0;
  if (is_token_generation(launch)) return launch.ctas > 1 ? 2 * int64_t{launch.ctas} : 0;
  return launch.num_splits > 1 ? grid_of(p, launch).size() : 0;
}

void size_workspace(const Problem& p, LaunchPlan& plan) {
  for (int32_t i = 0; i < plan.num_launches; ++i) {
    const Launch& launch = plan.launches[i];
    const int64_t slots = num_slots(p, launch, !plan.is_batch_invariant);
    plan.split.hold(slots, launch.tile.BM, launch.tile.depth_vo);
    if (slots > 0) plan.num_split_rows = total_rows(p) * p.num_q_heads;
  }
  plan.split.finish();
  plan.zeroed_workspace_bytes = plan.split.counter_bytes;
  plan.workspace_bytes = plan.split.bytes();
}

}  // namespace

core::Fit fit(const Shape& shape, const Problem& p, const Options& options, std::string* reason) {
  using core::Fit;
  const Fit fit = fit_of(p, shape.dtype, shape.depth_qk, shape.depth_vo, true, reason);
  if (fit != Fit::kServes) return fit;
  if (has_prefill_tile(shape.depth_vo)) {
    return fit_of_schedule(options, {pagoda::Schedule::kTransient, pagoda::Schedule::kStreamK},
                           reason);
  }
  const Fit schedule = fit_of_schedule(options, {pagoda::Schedule::kStreamK}, reason);
  return schedule == Fit::kServes ? fit_without_splits(options, reason) : schedule;
}

std::unique_ptr<LaunchPlan> make_plan(const Shape& shape, const Family& family, const Problem& p,
                                      int32_t num_sms, const Options& options) {
  const ScheduleChoice choice = ScheduleChoice::of(options);
  auto plan = std::make_unique<LaunchPlan>();
  plan->is_batch_invariant = !choice.may_split();
  if (total_rows(p) == 0) return plan;  // nothing to write
  const auto add = [&](RowKind rows, int32_t min_rows, int32_t max_rows) {
    Launch& launch = plan->launches[plan->num_launches++];
    launch.variant = variant_index(p, family, rows);
    launch.rows = rows;
    launch.tile = family.tile_of(shape.depth_qk, shape.depth_vo, family.variants[launch.variant]);
    launch.min_rows = min_rows;
    launch.max_rows = max_rows;
    if (rows == RowKind::kPrefill) {
      set_prefill_grid(p, num_sms, choice, launch);
    } else {
      set_stream_k(p, num_sms, launch);
    }
    plan->num_work_items += launch.ctas;
  };
  const bool has_long = choice.allows_tiles() && has_prefill_tile(shape.depth_vo) &&
                        (p.max_seqlen_q > kFewTokens || !choice.allows_stream_k());
  const bool has_short =
      choice.allows_stream_k() &&
      (!has_long || may_have_short_rows(p, kFewTokens, plan->is_batch_invariant));
  if (has_short) add(RowKind::kTokenGeneration, 0, has_long ? kFewTokens : INT32_MAX);
  if (has_long) add(RowKind::kPrefill, has_short ? kFewTokens + 1 : 1, INT32_MAX);
  size_workspace(p, *plan);
  return plan;
}

LaunchArguments make_arguments(const LaunchPlan& plan, const Launch& launch, const Problem& p,
                               std::span<std::byte> workspace) {
  LaunchArguments result;
  AttentionArguments& a = result.arguments;
  set_call(p, a);
  a.is_batch_invariant = plan.is_batch_invariant;
  a.min_rows = launch.min_rows;
  a.max_rows = launch.max_rows;
  plan.split.set(workspace, a);
  if (is_token_generation(launch)) {
    a.schedule = Schedule::kStreamK;
  } else {
    a.schedule = Schedule::kTransient;
    a.grid = grid_of(p, launch);
  }
  return result;
}

}  // namespace pagoda::kernels::kv_buffer
