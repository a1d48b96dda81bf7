// Choosing instances and filling in arguments.
#include "kernels/sm90/launch_plan.hpp"

#include <algorithm>

#include "core/int_math.hpp"
#include "kernels/sm90/work.hpp"
#include "mask/make_expression_mask.hpp"

namespace pagoda::sm90 {
namespace {

using core::Problem;

// Sequences of up to so many query rows have their heads packed; longer ones fill tiles of tokens.
// Measured on an H200, README.md.
constexpr int32_t kShortRows = 64;
constexpr int32_t kFewRows = 16;
constexpr int32_t kMinSplitTiles = 4;   // of keys: less does not pay for the merge
constexpr int64_t kAlignment = 128;     // bytes, of the parts of the workspace
constexpr int64_t kL2Bytes = 32 << 20;  // K and V that tiles of one section share: of H200's 50 MB

// --- what TMA can move -------------------------------------------------------------------------

// Rows of a box of K or V; 0 where the pages don't fit the tiles.
int32_t box_rows(const Problem& p, int32_t BN) {
  const int32_t piece = p.kv_kind == core::KVKind::kPaged ? kv_piece_rows(p.page_size, BN) : 0;
  return piece == 0 ? BN : std::max(piece, 0);
}

// Physical rows, of one row stride each, from one sequence or page to the next; 0: not a whole number.
int64_t outer_rows(const Problem& p, const core::KVView& view) {
  if (p.kv_kind == core::KVKind::kRagged) return 1;
  if (view.row_stride <= 0 || view.outer_stride < 0 || view.outer_stride % view.row_stride != 0) {
    return 0;
  }
  return view.outer_stride / view.row_stride;
}

int64_t num_rows(const Problem& p, const core::KVView& view) {
  if (p.kv_kind == core::KVKind::kRagged) return p.total_kv;
  const bool is_paged = p.kv_kind == core::KVKind::kPaged;
  const int64_t outer = is_paged ? p.num_pages : p.batch;
  if (outer == 0) return 0;
  return (outer - 1) * outer_rows(p, view) + (is_paged ? p.page_size : p.max_seqlen_kv);
}

arch::TensorMapType map_type(DType dtype) {
  if (dtype == DType::kF8E4M3) return arch::TensorMapType::kU8;
  return dtype == DType::kF16 ? arch::TensorMapType::kF16 : arch::TensorMapType::kBF16;
}

uint64_t stride_bytes(DType dtype, int64_t elements) {
  return static_cast<uint64_t>(elements) * static_cast<uint64_t>(size_bytes(dtype));
}

// What the maps of all operands share: boxes of `box_rows` rows and one panel's columns of one head.
arch::TensorMapSpec map_of(DType dtype, const void* data, int32_t rank, int32_t box_rows,
                           const TileConfig& tile) {
  arch::TensorMapSpec spec;
  spec.type = map_type(dtype);
  spec.rank = rank;
  spec.address = reinterpret_cast<uint64_t>(data);
  spec.box[0] = swizzle_width_bytes(tile.swizzle) / static_cast<uint32_t>(size_bytes(dtype));
  spec.box[2] = static_cast<uint32_t>(box_rows);
  spec.swizzle = tile.swizzle;
  spec.l2_promotion = arch::L2Promotion::k128B;
  return spec;
}

arch::TensorMapSpec kv_map(const Problem& p, const core::KVView& view, int32_t dim,
                           const TileConfig& tile) {
  arch::TensorMapSpec spec = map_of(view.dtype, view.data, 3, box_rows(p, tile.BN), tile);
  spec.dims[0] = static_cast<uint64_t>(dim);
  // Rows of 64 bytes: what else is in a line is another head's.
  if (stride_bytes(view.dtype, dim) <= 64) spec.l2_promotion = arch::L2Promotion::k64B;
  spec.dims[1] = static_cast<uint64_t>(p.num_kv_heads);
  spec.dims[2] = static_cast<uint64_t>(num_rows(p, view));
  // A stride over one head or row is never taken.
  const int64_t head = p.num_kv_heads > 1 ? view.head_stride : view.row_stride;
  spec.strides_bytes[0] = stride_bytes(view.dtype, head);
  spec.strides_bytes[1] = stride_bytes(view.dtype, view.row_stride);
  return spec;
}

// Boxes of 64 rows of one head.
arch::TensorMapSpec rows_map(const Problem& p, const core::RowView& view, int32_t dim,
                             const TileConfig& tile) {
  arch::TensorMapSpec spec = map_of(view.dtype, view.data, 4, kRows, tile);
  spec.dims[0] = static_cast<uint64_t>(dim);
  spec.dims[1] = static_cast<uint64_t>(p.num_q_heads);
  spec.dims[2] = static_cast<uint64_t>(p.is_ragged ? p.total_q : p.max_seqlen_q);
  spec.dims[3] = static_cast<uint64_t>(p.is_ragged ? 1 : p.batch);
  const int64_t head = p.num_q_heads > 1 ? view.head_stride : view.row_stride;
  const int64_t sequence = p.is_ragged || p.batch == 1 ? view.row_stride : view.sequence_stride;
  spec.strides_bytes[0] = stride_bytes(view.dtype, head);
  spec.strides_bytes[1] = stride_bytes(view.dtype, view.row_stride);
  spec.strides_bytes[2] = stride_bytes(view.dtype, sequence);
  return spec;
}

// TMA's rules, and coordinates of 31 bits.
bool is_possible(const arch::TensorMapSpec& spec) {
  for (int32_t d = 0; d < spec.rank; ++d) {
    if (spec.dims[d] > INT32_MAX) return false;
    if (d > 0 && spec.strides_bytes[d - 1] == 0) return false;
  }
  return !arch::validate(spec).exists();
}

bool is_kv_by_tma(const Problem& p, const TileConfig& tile) {
  const DType dtype = tile.load == LoadKind::kTmaFp8 ? DType::kF8E4M3 : p.q.dtype;
  if (p.k.dtype != dtype || box_rows(p, tile.BN) == 0) return false;
  // K and V share the rows of their pages: the page tables are looked up once for both.
  if (outer_rows(p, p.k) == 0 || outer_rows(p, p.k) != outer_rows(p, p.v)) return false;
  return is_possible(kv_map(p, p.k, p.head_dim_qk, tile)) &&
         is_possible(kv_map(p, p.v, p.head_dim_vo, tile));
}

// --- refusals ----------------------------------------------------------------------------------

std::string dtype_name(DType dtype) { return pagoda::name(dtype); }

// --- launches ----------------------------------------------------------------------------------

ScoreClass score_class(const Problem& p) {
  const mask::ExpressionMask mask = mask::make_expression_mask(p.mask);
  const bool is_plain = mask.program == 0 && !mask.has_bias() && p.score_mod.is_identity();
  return is_plain ? ScoreClass::kPlain : ScoreClass::kGeneral;
}

// Is there, or may there be, a sequence of 1 .. kShortRows query rows among longer ones?
bool may_have_short_rows(const Problem& p) {
  if (!p.is_ragged) return p.max_seqlen_q <= kShortRows;
  if (!p.has_host_lengths) return p.batch > 1;
  for (int32_t b = 0; b < p.batch; ++b) {
    if (p.seqlen_q(b) > 0 && p.seqlen_q(b) <= kShortRows) return true;
  }
  return false;
}

schedule::TileGrid grid_of(const Problem& p, const TileConfig& tile, const Launch& launch) {
  schedule::TileGrid grid;
  grid.batch = p.batch;
  grid.num_heads = p.num_q_heads;
  grid.tile_rows = tile.tile_rows();
  grid.rows = static_cast<int32_t>(p.is_ragged ? p.total_q : p.max_seqlen_q);
  grid.cu_rows = p.is_ragged ? p.cu_seqlens_q.data() : nullptr;
  grid.num_splits = launch.num_splits;
  const mask::ExpressionMask mask = mask::make_expression_mask(p.mask);
  if (mask.interval.rule.right != mask::IntervalRule::kOpen) {
    grid.order = schedule::TileOrder::kLongestFirst;
    // Heads whose K and V fit in L2 together; all query heads of a KV head share them.
    const int64_t head_bytes =
        int64_t{p.max_seqlen_kv_bound} * (p.head_dim_qk + p.head_dim_vo) * 2 / p.group;
    grid.section = static_cast<int32_t>(
        std::clamp<int64_t>(kL2Bytes / std::max<int64_t>(head_bytes, 1), 1, INT32_MAX));
  }
  return grid;
}

Launch tokens_launch(const Problem& p, const Shape& shape, ScoreClass scores, int32_t num_sms,
                     bool splits) {
  Launch launch{.rows = RowKind::kTokens, .scores = scores};
  const TileConfig tile = tile_of(shape.depth_qk, shape.depth_vo, launch.rows, scores);
  const int32_t tiles = grid_of(p, tile, launch).size();
  if (splits && tiles > 0 && tiles < num_sms) {
    const int32_t key_tiles = core::ceil_div(p.max_seqlen_kv_bound, tile.BN);
    launch.num_splits = std::max(1, std::min(num_sms / tiles, key_tiles / kMinSplitTiles));
  }
  launch.ctas = std::min(tiles * launch.num_splits, num_sms);
  return launch;
}

LoadKind packed_load(const Problem& p, const Shape& shape, ScoreClass scores) {
  const auto serves = [&](LoadKind load) {
    return is_kv_by_tma(p, tile_of(shape.depth_qk, shape.depth_vo, RowKind::kPacked, scores, load));
  };
  if (serves(LoadKind::kTma)) return LoadKind::kTma;
  const bool has_few_rows = int64_t{p.group} * p.max_seqlen_q <= kWarpRows;
  return has_few_rows && serves(LoadKind::kTmaFp8) ? LoadKind::kTmaFp8 : LoadKind::kGather;
}

Launch packed_launch(const Problem& p, const Shape& shape, ScoreClass scores, LoadKind load,
                     int32_t num_sms) {
  Launch launch{.rows = RowKind::kPacked, .scores = scores, .load = load};
  const TileConfig tile = tile_of(shape.depth_qk, shape.depth_vo, launch.rows, scores, load);
  const PackedRows packed = PackedRows::of(p.group, tile.block_rows);
  const int64_t rows = p.is_ragged ? p.total_q : int64_t{p.batch} * p.max_seqlen_q;
  const int64_t token_tiles = std::min<int64_t>(rows, rows / packed.tokens + p.batch);
  const int64_t key_tiles = std::max(1, core::ceil_div(p.max_seqlen_kv_bound, tile.BN) + 1);
  const int64_t most = token_tiles * p.num_kv_heads * packed.head_tiles * key_tiles;
  // Many rows take long to merge: half of the pieces then.
  const int32_t rows_of_unit = std::min(packed.tokens, p.max_seqlen_q) * packed.heads;
  const int32_t per_sm = rows_of_unit > kFewRows ? 1 : tile.ctas_per_sm;
  launch.ctas = static_cast<int32_t>(std::min<int64_t>(most, int64_t{num_sms} * per_sm));
  return launch;
}

// Slots of partial results, each of tile.num_consumers * 64 rows.
int64_t num_slots(const Problem& p, const TileConfig& tile, const Launch& launch, bool splits) {
  if (!splits) return 0;
  if (launch.rows == RowKind::kPacked) return launch.ctas > 1 ? 2 * int64_t{launch.ctas} : 0;
  return launch.num_splits > 1 ? grid_of(p, tile, launch).size() : 0;
}

void size_workspace(const Problem& p, LaunchPlan& plan) {
  for (int32_t i = 0; i < plan.num_launches; ++i) {
    const Launch& launch = plan.launches[i];
    const TileConfig tile = tile_of(plan.shape->depth_qk, plan.shape->depth_vo, launch.rows,
                                    launch.scores, launch.load);
    const int64_t blocks = num_slots(p, tile, launch, !plan.has_whole_units) * tile.num_consumers;
    const auto at_least = [](int64_t& size, int64_t bytes) {
      size = std::max(size, core::align_up(bytes, kAlignment));
    };
    at_least(plan.counter_bytes, blocks * int64_t{sizeof(uint32_t)});
    at_least(plan.stats_bytes, blocks * tile.block_rows * 4 * int64_t{sizeof(float)});
    at_least(plan.partial_bytes, blocks * tile.block_rows * tile.depth_vo * int64_t{sizeof(float)});
    if (blocks > 0) {
      plan.num_split_rows =
          (p.is_ragged ? p.total_q : int64_t{p.batch} * p.max_seqlen_q) * p.num_q_heads;
    }
  }
  plan.counter_bytes += kAlignment;  // the queue of the grid
  plan.zeroed_workspace_bytes = plan.counter_bytes;
  plan.workspace_bytes = plan.counter_bytes + plan.stats_bytes + plan.partial_bytes;
}

// --- arguments ---------------------------------------------------------------------------------

kernel::RowsView rows_view(const core::RowView& view) {
  return {view.sequence_stride, view.row_stride, view.head_stride};
}

KeyRows key_rows(const Problem& p) {
  KeyRows keys;
  if (p.kv_kind == core::KVKind::kDense) {
    keys.kind = KeyRowsKind::kDense;
    keys.dense.rows_per_batch = static_cast<uint32_t>(outer_rows(p, p.k));
    keys.dense.keys_per_batch = static_cast<uint32_t>(p.max_seqlen_kv);
    keys.dense.lengths = p.seqlens_kv.data();
  } else if (p.kv_kind == core::KVKind::kRagged) {
    keys.kind = KeyRowsKind::kRagged;
    keys.ragged.offsets = p.cu_seqlens_kv.data();
  } else {
    keys.kind = KeyRowsKind::kPaged;
    keys.paged.page_size = p.page_size;
    keys.paged.row_stride = static_cast<uint32_t>(outer_rows(p, p.k));
    if (p.block_table.pages != nullptr) {
      keys.paged.pages = p.block_table.pages;
      keys.paged.table_stride = p.block_table.row_stride;
      keys.paged.lengths = p.seqlens_kv.data();
    } else {
      keys.paged.pages = p.csr.indices.data();
      keys.paged.first_page_of = p.csr.indptr.data();
      keys.paged.lengths = p.csr.last_page_len.data();
    }
  }
  return keys;
}

kernel::Sequences sequences_of(const Problem& p) {
  kernel::Sequences sequences;
  sequences.batch = p.batch;
  sequences.padded_rows = p.max_seqlen_q;
  sequences.cu_rows = p.is_ragged ? p.cu_seqlens_q.data() : nullptr;
  sequences.valid_rows =
      p.is_ragged || p.seqlens_q_valid.empty() ? nullptr : p.seqlens_q_valid.data();
  sequences.q_positions = p.cache_lengths.empty() ? nullptr : p.cache_lengths.data();
  sequences.keys = key_rows(p);
  return sequences;
}

void set_workspace(const LaunchPlan& plan, std::span<std::byte> workspace,
                   kernel::AttentionArguments& a) {
  if (workspace.empty()) return;
  std::byte* at = workspace.data();
  a.grid_counter = reinterpret_cast<uint32_t*>(at);
  a.counters = reinterpret_cast<uint32_t*>(at + kAlignment);
  at += plan.counter_bytes;
  a.partial_stats = reinterpret_cast<float*>(at);
  at += plan.stats_bytes;
  a.partial_out = reinterpret_cast<float*>(at);
}

}  // namespace

std::string refuses(const Shape& shape, const Problem& p) {
  if (p.q.dtype != shape.dtype) {
    return "queries are " + dtype_name(p.q.dtype) + ", these are for " + dtype_name(shape.dtype);
  }
  if (p.k.dtype != shape.dtype && p.k.dtype != DType::kF8E4M3) {
    return "the cache is " + dtype_name(p.k.dtype) + ": the queries' type or f8e4m3 is served";
  }
  if (p.head_dim_qk > shape.depth_qk || p.head_dim_vo > shape.depth_vo) {
    return "head dims " + std::to_string(p.head_dim_qk) + " x " + std::to_string(p.head_dim_vo) +
           " exceed " + std::to_string(shape.depth_qk) + " x " + std::to_string(shape.depth_vo);
  }
  if (p.score_mod.functor != nullptr) return "score functors are the host's";
  return mask::refuses_expression_mask(p.mask);
}

std::unique_ptr<LaunchPlan> make_plan(const Shape& shape, const Problem& p, int32_t num_sms,
                                      bool is_batch_invariant) {
  auto plan = std::make_unique<LaunchPlan>();
  plan->shape = &shape;
  plan->has_whole_units = is_batch_invariant;
  const int64_t rows = p.is_ragged ? p.total_q : int64_t{p.batch} * p.max_seqlen_q;
  if (rows == 0) return plan;  // nothing to write
  const ScoreClass scores = score_class(p);
  const TileConfig tokens = tile_of(shape.depth_qk, shape.depth_vo, RowKind::kTokens, scores);
  const bool has_tokens = p.max_seqlen_q > kShortRows && is_kv_by_tma(p, tokens) &&
                          is_possible(rows_map(p, p.q, p.head_dim_qk, tokens));
  const auto add = [&plan](const Launch& launch) {
    plan->launches[plan->num_launches++] = launch;
    plan->num_work_items += launch.ctas;
  };
  if (!has_tokens || may_have_short_rows(p)) {
    Launch launch = packed_launch(p, shape, scores, packed_load(p, shape, scores), num_sms);
    if (has_tokens) launch.max_rows = kShortRows;
    add(launch);
  }
  if (has_tokens) {
    Launch launch = tokens_launch(p, shape, scores, num_sms, !is_batch_invariant);
    launch.min_rows = plan->num_launches > 0 ? kShortRows + 1 : 1;
    add(launch);
  }
  size_workspace(p, *plan);
  return plan;
}

LaunchArguments make_arguments(const LaunchPlan& plan, const Launch& launch, const Problem& p,
                               std::span<std::byte> workspace) {
  const TileConfig tile =
      tile_of(plan.shape->depth_qk, plan.shape->depth_vo, launch.rows, launch.scores, launch.load);
  LaunchArguments result;
  kernel::AttentionArguments& a = result.arguments;
  a.sequences = sequences_of(p);
  a.num_kv_heads = p.num_kv_heads;
  a.group = p.group;
  a.dim_qk = p.head_dim_qk;
  a.dim_vo = p.head_dim_vo;
  a.q_data = p.q.data;
  a.out_data = p.out.data;
  a.lse = static_cast<float*>(p.lse.data);
  a.row_max = static_cast<float*>(p.row_max.data);
  a.q_rows = rows_view(p.q);
  a.out_rows = rows_view(p.out);
  a.lse_rows = rows_view(p.lse);
  a.row_max_rows = rows_view(p.row_max);
  a.k_data = p.k.data;
  a.v_data = p.v.data;
  a.k_rows = {p.k.outer_stride, p.k.row_stride, p.k.head_stride};
  a.v_rows = {p.v.outer_stride, p.v.row_stride, p.v.head_stride};
  a.kv_element_bytes = static_cast<int32_t>(size_bytes(p.k.dtype));
  a.mask = mask::make_expression_mask(p.mask);
  a.score_map = softmax::score_map(p.softmax_scale, p.score_mod.softcap);
  a.alibi_slopes = p.score_mod.alibi_slopes.empty() ? nullptr : p.score_mod.alibi_slopes.data();
  a.sinks = p.sinks.empty() ? nullptr : p.sinks.data();
  a.kv_scales = {p.kv_scales.k, p.kv_scales.v,
                 p.kv_scales.k_per_head.empty() ? nullptr : p.kv_scales.k_per_head.data(),
                 p.kv_scales.v_per_head.empty() ? nullptr : p.kv_scales.v_per_head.data()};
  a.has_whole_units = plan.has_whole_units;
  a.min_rows = launch.min_rows;
  a.max_rows = launch.max_rows;
  set_workspace(plan, workspace, a);
  if (launch.rows == RowKind::kTokens) {
    a.grid = grid_of(p, tile, launch);
    result.q = rows_map(p, p.q, p.head_dim_qk, tile);
    result.out = rows_map(p, p.out, p.head_dim_vo, tile);
    a.is_out_by_tma = is_possible(result.out);
    if (!a.is_out_by_tma) result.out.rank = 0;
  } else {
    result.q.rank = result.out.rank = 0;
  }
  if (launch.load != LoadKind::kGather) {
    result.k = kv_map(p, p.k, p.head_dim_qk, tile);
    result.v = kv_map(p, p.v, p.head_dim_vo, tile);
  } else {
    result.k.rank = result.v.rank = 0;
  }
  return result;
}

}  // namespace pagoda::sm90
