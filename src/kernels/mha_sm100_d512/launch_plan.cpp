// Decides what is unsupported, sizes the grid, fills in kernel arguments.
#include "kernels/mha_sm100_d512/launch_plan.hpp"

#include <algorithm>

#include "kernels/common/schedule_choice.hpp"
#include "kernels/common/work_tile.hpp"
#include "mask/make_expression_mask.hpp"
#include "operand/paged_row_indices.hpp"

namespace pagoda::mha_sm100_d512 {
namespace {

using core::Problem;
using kernels::Schedule;
using kernels::total_rows;

TileConfig tile_of(const Shape& shape, ScoreClass scores) {
  return mha_sm100_d512::tile_of(static_cast<int>(size_bytes(shape.dtype)), shape.depth, scores);
}

// Query heads of a work tile: those of one KV head, or, where they exceed the rows of a block, the
// largest divisor that fits.
int32_t tile_heads(const Problem& p, const TileConfig& tile) {
  return kernels::PackedRows::of(p.group, tile.block_rows, kPair, TileConfig::fuses_heads).heads;
}
int32_t block_tokens(const Problem& p, const TileConfig& tile) {
  return tile.block_rows / tile_heads(p, tile);
}

schedule::TileGrid grid_of(const Problem& p, const TileConfig& tile) {
  return kernels::tile_grid(p, tile_heads(p, tile), kPair * block_tokens(p, tile),
                            kernels::sm100::kL2Bytes);
}

core::Fit fit_of_keys(const Problem& p, const TileConfig& tile, std::string* reason) {
  using core::Fit;
  if (p.kv_kind == core::KVKind::kPaged) {
    const int piece = operand::kv_copy_rows(p.page_size, tile.BN);
    if (piece != 0 && piece < kernels::sm100::kMinPieceRows) {
      return core::unfit(Fit::kFeatures, reason, [&] {
        return "pages of " + std::to_string(p.page_size) + " keys: pieces of " +
               std::to_string(kernels::sm100::kMinPieceRows) + " or more are moved";
      });
    }
  }
  // The TMA box of a CTA has half of a tile's keys.
  if (!kernels::is_kv_by_tma(p, tile.BN / kPair, tile.swizzle)) {
    return core::unfit(Fit::kFeatures, reason,
                       [] { return "TMA can't move K and V with these strides"; });
  }
  return Fit::kServes;
}

}  // namespace

core::Fit fit(const Shape& shape, const Problem& p, const Options& options, std::string* reason) {
  using core::Fit;
  Fit fit = kernels::fit_of(p, shape.dtype, shape.depth, shape.depth, false, reason);
  if (fit == Fit::kServes) {
    fit = kernels::fit_of_schedule(
        options, {pagoda::Schedule::kTransient, pagoda::Schedule::kPersistent}, reason);
  }
  if (fit == Fit::kServes) fit = kernels::fit_without_splits(options, reason);
  if (fit != Fit::kServes) return fit;
  const TileConfig tile = tile_of(shape, ScoreClass::kPlain);
  if (total_rows(p) > 0 &&
      !kernels::is_possible(kernels::rows_map(p, p.q, p.head_dim_qk, tile_heads(p, tile),
                                              block_tokens(p, tile), tile.swizzle))) {
    return core::unfit(Fit::kFeatures, reason,
                       [] { return "TMA can't move queries with these strides"; });
  }
  return fit_of_keys(p, tile, reason);
}

std::unique_ptr<LaunchPlan> make_plan(const Shape& shape, const Problem& p, int32_t num_sms,
                                      const Options& options) {
  auto plan = std::make_unique<LaunchPlan>();
  plan->shape = &shape;
  plan->scores = kernels::score_class(p);
  plan->schedule = kernels::ScheduleChoice::of(options).of_tiles(Schedule::kPersistent);
  if (total_rows(p) == 0) return plan;
  const int32_t tiles = grid_of(p, tile_of(shape, plan->scores)).size();
  const int32_t pairs = std::max(1, num_sms / kPair);
  plan->ctas = kPair * (plan->schedule == Schedule::kTransient ? tiles : std::min(tiles, pairs));
  plan->num_work_items = plan->ctas;
  return plan;
}

kernels::LaunchArguments make_arguments(const LaunchPlan& plan, const Problem& p) {
  const TileConfig tile = tile_of(*plan.shape, plan.scores);
  kernels::LaunchArguments result;
  kernels::AttentionArguments& a = result.arguments;
  kernels::set_call(p, a);
  a.schedule = plan.schedule;
  a.grid = grid_of(p, tile);
  const int32_t heads = tile_heads(p, tile), tokens = block_tokens(p, tile);
  result.q = kernels::rows_map(p, p.q, p.head_dim_qk, heads, tokens, tile.swizzle);
  result.k = kernels::kv_map(p, p.k, p.head_dim_qk, tile.BN / kPair, tile.swizzle);
  result.v = kernels::kv_map(p, p.v, p.head_dim_vo, tile.BN / kPair, tile.swizzle);
  // O has 16 bits: its lines are 128 bytes also with e4m3 queries.
  result.out = kernels::rows_map(p, p.out, p.head_dim_vo, heads, tokens, arch::Swizzle::k128B);
  a.is_out_by_tma = kernels::stores_by_tma(p, result.out);
  if (!a.is_out_by_tma) result.out.rank = 0;
  return result;
}

}  // namespace pagoda::mha_sm100_d512
