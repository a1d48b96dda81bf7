// Decides what is unsupported, sizes the grid, fills in kernel arguments.
#include "kernels/mha_sm100_d512/launch_plan.hpp"

#include "operand/paged_row_indices.hpp"

namespace pagoda::mha_sm100_d512 {
namespace {

using core::Problem;
using kernels::total_rows;

TileConfig tile_of(const Shape& shape, ScoreClass scores) {
  return mha_sm100_d512::tile_of(static_cast<int>(size_bytes(shape.dtype)), shape.depth, scores);
}

kernels::sm100::WorkTileShape work_tile(const TileConfig& tile) {
  return {.ctas = kPair,
          .block_rows = tile.block_rows,
          .blocks = kPair,
          .BN = tile.BN,
          .depth = tile.depth};
}

bool is_gathered(const Problem& p, const TileConfig& tile) {
  // The TMA box of a CTA has half of a tile's keys.
  if (p.k.dtype != p.q.dtype || !kernels::is_kv_by_tma(p, tile.BN / kPair, tile.swizzle)) {
    return true;
  }
  if (p.kv_kind != core::KVKind::kPaged) return false;
  const int rows = operand::kv_copy_rows(p.page_size, tile.BN);
  return rows != 0 && rows < kernels::sm100::kMinPieceRows;
}

}  // namespace

core::Fit fit(const Shape& shape, const Problem& p, const Options& /*options*/,
              std::string* reason) {
  using core::Fit;
  const Fit fit = kernels::fit_of(p, shape.dtype, shape.depth, shape.depth, true, reason);
  if (fit != Fit::kServes) return fit;
  const TileConfig tile = tile_of(shape, ScoreClass::kPlain);
  const kernels::sm100::WorkTileShape rows = work_tile(tile);
  if (total_rows(p) > 0 &&
      !kernels::is_possible(kernels::rows_map(p, p.q, p.head_dim_qk, rows.heads(p),
                                              rows.block_tokens(p), tile.swizzle))) {
    return core::unfit(Fit::kFeatures, reason,
                       [] { return "TMA can't move queries with these strides"; });
  }
  return Fit::kServes;
}

std::unique_ptr<LaunchPlan> make_plan(const Shape& shape, const Problem& p, int32_t num_sms,
                                      const Options& options) {
  auto plan = std::make_unique<LaunchPlan>();
  plan->shape = &shape;
  plan->scores = kernels::score_class(p);
  const TileConfig tile = tile_of(shape, plan->scores);
  plan->is_gathered = is_gathered(p, tile);
  kernels::sm100::plan_launches(p, work_tile(tile), num_sms, options, *plan);
  return plan;
}

kernels::LaunchArguments make_arguments(const LaunchPlan& plan, const Launch& launch,
                                        const Problem& p, std::span<std::byte> workspace) {
  const TileConfig tile = tile_of(*plan.shape, plan.scores);
  const kernels::sm100::WorkTileShape rows = work_tile(tile);
  kernels::LaunchArguments result;
  kernels::AttentionArguments& a = result.arguments;
  kernels::sm100::set_launch(p, rows, plan, launch, workspace, a);
  const int32_t heads = rows.heads(p), tokens = rows.block_tokens(p);
  result.q = kernels::rows_map(p, p.q, p.head_dim_qk, heads, tokens, tile.swizzle);
  if (!plan.is_gathered) {
    result.k = kernels::kv_map(p, p.k, p.head_dim_qk, tile.BN / kPair, tile.swizzle);
    result.v = kernels::kv_map(p, p.v, p.head_dim_vo, tile.BN / kPair, tile.swizzle);
  }
  // O has 16 bits: its lines are 128 bytes also with e4m3 queries.
  result.out = kernels::rows_map(p, p.out, p.head_dim_vo, heads, tokens, arch::Swizzle::k128B);
  a.is_out_by_tma = kernels::stores_by_tma(p, result.out);
  if (!a.is_out_by_tma) result.out.rank = 0;
  return result;
}

}  // namespace pagoda::mha_sm100_d512
