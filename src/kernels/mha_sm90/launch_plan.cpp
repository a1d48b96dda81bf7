// Builds the launches of a call and sets their arguments. Which launches a call has is
// divide_sequences' decision.
#include "kernels/mha_sm90/launch_plan.hpp"

#include <algorithm>
#include <optional>

#include "kernels/common/call_arguments.hpp"
#include "kernels/common/mixed_work.hpp"
#include "kernels/common/schedule_choice.hpp"
#include "kernels/mha_sm90/call_tiles.hpp"
#include "kernels/mha_sm90/division.hpp"
#include "kernels/mha_sm90/latent_launch.hpp"
#include "kernels/mha_sm90/packed_launch.hpp"
#include "kernels/mha_sm90/row_tiles.hpp"
#include "kernels/mha_sm90/schedule.hpp"

namespace pagoda::mha_sm90 {
namespace {

using core::Problem;
using kernels::ScheduleChoice;
using kernels::total_rows;

// Decoding beside prompts: sequences of up to `decode_rows` query rows are decoded.
Launch mixed_launch(const Problem& p, int32_t decode_rows, int32_t num_sms) {
  return {.rows = RowKind::kMixedTokens,
          .ctas = num_sms,
          .heads = p.group,
          .min_rows = decode_rows + 1,
          .max_rows = decode_rows};
}

// Slots of partial results, each of tile.num_consumers * 64 rows.
int64_t num_slots(const Problem& p, const TileConfig& tile, const Launch& launch, bool splits) {
  if (!splits) return 0;
  if (launch.rows == RowKind::kPacked) return launch.ctas > 1 ? 2 * int64_t{launch.ctas} : 0;
  if (launch.is_mixed()) {
    return kernels::decode_slots(launch.ctas) + kernels::prompt_slots(launch.ctas);
  }
  const schedule::TileGrid grid = grid_of(p, tile, launch);
  if (tile.has_equal_shares) return int64_t{grid.num_tiles()} + launch.ctas;
  return launch.num_splits > 1 ? grid.size() - launch.num_whole : 0;
}

// (row, query head) pairs that a plan with partial results may merge.
int64_t num_split_rows(const Problem& p, const TileConfig& tile, const Launch& launch) {
  const int64_t all = total_rows(p) * p.num_q_heads;
  if (launch.rows == RowKind::kPacked || launch.is_mixed()) return all;
  const int64_t tiles = grid_of(p, tile, launch).num_tiles() - launch.num_whole;
  return std::min(all, tiles * std::min(tile.tile_rows(), p.max_seqlen_q * launch.heads));
}

void size_workspace(const Problem& p, LaunchPlan& plan) {
  for (int32_t i = 0; i < plan.num_launches; ++i) {
    const Launch& launch = plan.launches[i];
    const TileConfig tile = tile_of(*plan.shape, launch.rows, launch.scores, launch.load);
    const int64_t blocks =
        num_slots(p, tile, launch, !plan.is_batch_invariant) * tile.num_multiplying();
    plan.split.hold(blocks, tile.block_rows, tile.out_columns());
    if (blocks > 0) {
      plan.num_split_rows = std::max(plan.num_split_rows, num_split_rows(p, tile, launch));
    }
  }
  plan.split.finish();
  plan.zeroed_workspace_bytes = plan.split.counter_bytes;
  plan.workspace_bytes = plan.split.bytes();
}

}  // namespace

core::Fit fit(const Shape& shape, const Problem& p, const Options& options, std::string* reason) {
  using core::Fit;
  if (is_latent(shape)) return fit_latent(shape, p, options, reason);
  Fit fit = kernels::fit_of(p, shape.dtype, shape.depth_qk, shape.depth_vo, true, reason);
  if (fit != Fit::kServes) return fit;
  fit = kernels::fit_of_schedule(options, {Schedule::kQueue, Schedule::kStreamK}, reason);
  if (fit != Fit::kServes) return fit;
  const ScoreClass scores = kernels::score_class(p);
  if (shape.dtype == DType::kF8E4M3 && !is_kv_by_tma(p, tile_of(shape, RowKind::kPacked, scores))) {
    return core::unfit(Fit::kFeatures, reason, [] {
      return "e4m3 queries need K and V that TMA can load: rows at multiples of 16 bytes, pages of "
             "8 keys or more, no left padding of pages";
    });
  }
  if (!ScheduleChoice::of(options).allows_stream_k() && total_rows(p) > 0 &&
      !tokens_load(p, shape, tokens_scores(p))) {
    return core::unfit(Fit::kFeatures, reason, [] {
      return "schedule queue, and KV splits by number, need Q, K and V that TMA can move";
    });
  }
  return Fit::kServes;
}

std::unique_ptr<LaunchPlan> make_plan(const Shape& shape, const Problem& p, int32_t num_sms,
                                      const Options& options) {
  const ScheduleChoice choice = ScheduleChoice::of(options);
  auto plan = std::make_unique<LaunchPlan>();
  plan->shape = &shape;
  plan->is_batch_invariant = !choice.may_split();
  if (p.batch == 0 || total_rows(p) == 0) return plan;  // nothing to write
  if (is_latent(shape)) {
    plan->launches[plan->num_launches++] = latent_launch(p, shape, num_sms, choice.may_split());
    plan->num_work_items = plan->launches[0].ctas;
    size_workspace(p, *plan);
    return plan;
  }
  const ScoreClass scores = kernels::score_class(p), of_tokens = tokens_scores(p);
  const std::optional<LoadKind> tokens = tokens_load(p, shape, of_tokens);
  const auto [launches, most_packed] = divide_sequences(p, shape, tokens, num_sms, choice);
  const bool has_both = launches == LaunchSet::kPackedAndTokens;
  const auto add = [&plan](const Launch& launch) {
    plan->launches[plan->num_launches++] = launch;
    plan->num_work_items += launch.ctas;
  };
  if (launches == LaunchSet::kMixed) add(mixed_launch(p, most_packed, num_sms));
  if (launches == LaunchSet::kPacked || has_both) {
    // Of the sequences that the launch serves, in an invariant batch of those that it might.
    const int32_t most_rows =
        plan->is_batch_invariant ? most_packed : std::min(most_packed, p.max_seqlen_q);
    const LoadKind load = packed_load(p, shape, scores, most_rows);
    Launch launch = packed_launch(p, shape, scores, load, num_sms);
    if (has_both) launch.max_rows = most_packed;
    add(launch);
  }
  if (launches == LaunchSet::kTokens || has_both) {
    Launch launch = tokens_launch(p, shape, of_tokens, *tokens, num_sms, choice);
    if (has_both) launch.min_rows = most_packed + 1;
    add(launch);
  }
  size_workspace(p, *plan);
  return plan;
}

kernels::LaunchArguments make_arguments(const LaunchPlan& plan, const Launch& launch,
                                        const Problem& p, std::span<std::byte> workspace) {
  const TileConfig tile = tile_of(*plan.shape, launch.rows, launch.scores, launch.load);
  kernels::LaunchArguments result;
  kernels::AttentionArguments& a = result.arguments;
  kernels::set_call(p, a);
  a.is_batch_invariant = plan.is_batch_invariant;
  a.min_rows = launch.min_rows;
  a.max_rows = launch.max_rows;
  plan.split.set(workspace, a);
  const auto set_q = [&] {
    a.row_block = {launch.heads, kRows / launch.heads, arch::Divisor(launch.heads)};
    result.q = q_map(p, tile, launch.heads);
  };
  if (launch.rows != RowKind::kPacked) {
    const schedule::TileGrid grid = grid_of(p, tile, launch);
    a.grid = grid;
    a.is_merge_shared = tile.may_share_merge() && kernels::shares_merge(grid, launch.ctas);
    set_q();
    result.out = kernels::rows_map(p, p.out, p.head_dim_vo, launch.heads, a.row_block.tokens,
                                   tile.out_swizzle());
    a.is_out_by_tma = kernels::stores_by_tma(p, result.out);
    if (!a.is_out_by_tma) result.out.rank = 0;
  } else {  // row tiles of tokens keep the normal policy, with which they were measured
    // Evict first is 3 to 5 % slower in decoding: decision 0030.
    a.kv_eviction = kernels::kv_eviction(p, PackedRows::of(p.group, tile.block_rows),
                                         arch::Eviction::kNormal, launch.max_rows);
    a.is_merge_shared = launch.shares_merge;
    if (tile.is_latent) {
      set_q();
      set_latent_work(launch.ctas, launch.side_by_side, a);
    }
  }
  if (launch.load != LoadKind::kGather) {
    result.k = kernels::kv_map(p, p.k, p.head_dim_qk, tile.BN, tile.loaded_swizzle());
    if (!tile.is_latent) {
      result.v = kernels::kv_map(p, p.v, p.head_dim_vo, tile.BN, tile.loaded_swizzle());
    }
  }
  return result;
}

}  // namespace pagoda::mha_sm90
