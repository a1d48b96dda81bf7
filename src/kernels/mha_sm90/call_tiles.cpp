// The grid, the loads and the tensor map of Q that follow from a call and a tile.
#include "kernels/mha_sm90/call_tiles.hpp"

#include "kernels/common/call_arguments.hpp"
#include "operand/paged_row_indices.hpp"

namespace pagoda::mha_sm90 {
namespace {

using core::Problem;

// K and V of a TileGrid section, with up to kFewKeys keys and with more: an H100 or H200 has 50 MB
// of L2, and each key of a short prompt is read a few times only, while Q and O of as many bytes
// pass through. Measured, README.md.
constexpr int64_t kL2BytesOfFewKeys = 16 << 20, kL2Bytes = 32 << 20;

}  // namespace

TileConfig tile_of(const Shape& shape, RowKind rows, ScoreClass scores, LoadKind load) {
  return tile_of(shape.depth_qk, shape.depth_vo, rows, scores, load,
                 static_cast<int>(size_bytes(shape.dtype)));
}

arch::TensorMapSpec q_map(const Problem& p, const TileConfig& tile, int32_t heads) {
  return kernels::rows_map(p, p.q, p.head_dim_qk, heads, kRows / heads, tile.swizzle);
}

bool is_kv_by_tma(const Problem& p, const TileConfig& tile) {
  const bool is_cache_fp8 = tile.load == LoadKind::kTmaFp8 || tile.widens();
  const DType dtype = is_cache_fp8 ? DType::kF8E4M3 : p.q.dtype;
  if (p.kv_kind == core::KVKind::kPaged) {
    const int rows = operand::kv_copy_rows(p.page_size, tile.BN);
    if (rows != 0 && rows < tile.fewest_copy_rows()) return false;
  }
  return p.k.dtype == dtype && kernels::is_kv_by_tma(p, tile.BN, tile.loaded_swizzle());
}

ScoreClass tokens_scores(const Problem& p) {
  return kernels::is_capped(p) ? ScoreClass::kCapped : kernels::score_class(p);
}

std::optional<LoadKind> tokens_load(const Problem& p, const Shape& shape, ScoreClass scores) {
  const auto serves = [&](LoadKind load) {
    const TileConfig tile = tile_of(shape, RowKind::kTokens, scores, load);
    return is_kv_by_tma(p, tile) && kernels::is_possible(q_map(p, tile));
  };
  if (serves(LoadKind::kTma)) return LoadKind::kTma;
  const bool may_widen = has_widened(shape, scores) && p.functor.type == nullptr;
  if (may_widen && serves(LoadKind::kTmaWiden)) return LoadKind::kTmaWiden;
  return std::nullopt;
}

LoadKind packed_load(const Problem& p, const Shape& shape, ScoreClass scores, int32_t most_rows) {
  const auto serves = [&](LoadKind load) {
    return is_kv_by_tma(p, tile_of(shape, RowKind::kPacked, scores, load));
  };
  if (serves(LoadKind::kTma)) return LoadKind::kTma;
  const bool has_few_rows = int64_t{p.group} * most_rows <= kWarpRows;
  return has_few_rows && serves(LoadKind::kTmaFp8) ? LoadKind::kTmaFp8 : LoadKind::kGather;
}

schedule::TileGrid grid_of(const Problem& p, const TileConfig& tile, const Launch& launch) {
  const int64_t l2_bytes = p.max_seqlen_kv_bound <= kFewKeys ? kL2BytesOfFewKeys : kL2Bytes;
  const int32_t tokens = tile.num_consumers * (kRows / launch.heads);
  schedule::TileGrid grid = kernels::tile_grid(p, launch.heads, tokens, l2_bytes);
  grid.num_splits = launch.num_splits;
  grid.num_whole = launch.num_whole;
  grid.least_split_tiles = launch.least_split_tiles;
  if (tile.has_equal_shares) grid.divide_among(launch.ctas);
  return grid;
}

int64_t visible_kv_bytes(const Problem& p) {
  const int64_t key_bytes = (p.head_dim_qk + p.head_dim_vo) * size_bytes(p.k.dtype);
  return int64_t{p.batch} * p.num_kv_heads * key_bytes *
         kernels::max_visible_keys(p, p.max_seqlen_q);
}

bool are_prompts(const Problem& p) { return p.max_seqlen_kv_bound < 2 * int64_t{p.max_seqlen_q}; }

bool sees_half(const Problem& p, const schedule::TileGrid& grid) {
  return grid.order == schedule::TileOrder::kLongestFirst && are_prompts(p);
}

}  // namespace pagoda::mha_sm90
