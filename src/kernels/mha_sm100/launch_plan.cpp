// Chooses schedules and fills in kernel arguments.
#include "kernels/mha_sm100/launch_plan.hpp"

#include "mask/make_expression_mask.hpp"
#include "operand/paged_row_indices.hpp"

namespace pagoda::mha_sm100 {
namespace {

using core::Problem;
using kernels::total_rows;

TileConfig tile_of(const Shape& shape, ScoreClass scores) {
  return mha_sm100::tile_of(static_cast<int>(size_bytes(shape.dtype)), shape.depth, scores,
                            shape.ctas);
}

kernels::sm100::WorkTileShape work_tile(const TileConfig& tile) {
  return {.ctas = tile.ctas,
          .block_rows = kRows,
          .blocks = kHalves * tile.ctas,
          .BN = tile.BN,
          .depth = tile.depth};
}

bool is_gathered(const Problem& p, const TileConfig& tile) {
  if (p.k.dtype != p.q.dtype || !kernels::is_kv_by_tma(p, tile.BN, tile.swizzle)) return true;
  if (p.kv_kind != core::KVKind::kPaged) return false;
  const int rows = operand::kv_copy_rows(p.page_size, tile.BN);
  return rows != 0 && rows < kernels::sm100::kMinPieceRows;
}

// The rule for CTA pairs: more rows than one CTA's tile has, which all see the same keys
// (FlashAttention-4 takes pairs only there), and work tiles that fill the chip (Modular's FA4).
// Returns why a call takes one CTA a tile; empty where it takes pairs.
std::string reason_against_pairs(const Shape& shape, const Problem& p, int32_t num_sms,
                                 const Options& options) {
  Shape pair = shape;
  pair.ctas = 2;
  const TileConfig tile = tile_of(pair, ScoreClass::kPlain);
  if (is_gathered(p, tile)) return "TMA can't load K and V";
  if (options.is_batch_invariant) return "the choice would depend on the batch";
  if (p.is_ragged || !p.seqlens_q_valid.empty()) return "sequences may end inside a tile of a pair";
  const mask::IntervalRule rule = mask::make_expression_mask(p.mask).interval.rule;
  if (rule.left != mask::IntervalRule::kOpen || rule.right != mask::IntervalRule::kOpen ||
      rule.chunk > 0) {
    return "its rows see different keys";
  }
  if (p.max_seqlen_q <= work_tile(tile).packed_rows(p).tokens / tile.ctas) {
    return "the tile of one CTA has all rows of a sequence";
  }
  const int32_t tiles = work_tile(tile).grid(p).size(), pairs = work_tile(tile).groups(num_sms);
  if (tiles >= pairs) return {};
  return std::to_string(tiles) + " tiles of a pair's rows for " + std::to_string(pairs) +
         " pairs of multiprocessors";
}

}  // namespace

core::Fit fit(const Shape& shape, const Problem& p, const Options& /*options*/,
              std::string* reason) {
  using core::Fit;
  const Fit fit = kernels::fit_of(p, shape.dtype, shape.depth, shape.depth, true, reason);
  if (fit != Fit::kServes) return fit;
  const TileConfig tile = tile_of(shape, ScoreClass::kPlain);
  if (tile.ctas == 2 && is_gathered(p, tile)) {
    return core::unfit(Fit::kFeatures, reason,
                       [] { return "pairs of CTAs load K and V by TMA, which can't move these"; });
  }
  const kernels::sm100::WorkTileShape rows = work_tile(tile);
  if (total_rows(p) > 0 &&
      !kernels::is_possible(kernels::rows_map(p, p.q, p.head_dim_qk, rows.heads(p),
                                              rows.block_tokens(p), tile.swizzle))) {
    return core::unfit(Fit::kFeatures, reason,
                       [] { return "TMA can't move queries with these strides"; });
  }
  return Fit::kServes;
}

bool is_ranked_lower(const Shape& shape, const Problem& p, int32_t num_sms, const Options& options,
                     std::string* reason) {
  if (shape.depth < 128) return false;  // has no pairs
  const std::string against = reason_against_pairs(shape, p, num_sms, options);
  if (shape.ctas == 2) {
    if (reason != nullptr) *reason = "one CTA serves it: " + against;
    return !against.empty();
  }
  if (reason != nullptr) *reason = "CTA pairs serve it: rows see all keys, tiles fill the chip";
  return against.empty();
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
  kernels::LaunchArguments result;
  kernels::AttentionArguments& a = result.arguments;
  const kernels::sm100::WorkTileShape rows = work_tile(tile);
  kernels::sm100::set_launch(p, rows, plan, launch, workspace, a);
  const int32_t heads = rows.heads(p), tokens = rows.block_tokens(p);
  result.q = kernels::rows_map(p, p.q, p.head_dim_qk, heads, tokens, tile.swizzle);
  if (!plan.is_gathered) {
    result.k =
        kernels::kv_map(p, p.k, p.head_dim_qk, tile.kv_tiling().k_rows_per_cta(), tile.swizzle);
    result.v = kernels::kv_map(p, p.v, p.head_dim_vo, tile.kv_tiling().BK1, tile.swizzle);
  }
  // e4m3 queries: O is stored in two passes, with lines of 64 bytes.
  result.out = kernels::rows_map(p, p.out, p.head_dim_vo, heads, tokens,
                                 kernels::sm100::swizzle_of(tile.element_bytes));
  a.is_out_by_tma = kernels::stores_by_tma(p, result.out);
  if (!a.is_out_by_tma) result.out.rank = 0;
  return result;
}

}  // namespace pagoda::mha_sm100
