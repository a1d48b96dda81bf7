// Chooses the variants for a call and sets their arguments.
#include "kernels/common/kv_buffer/launch_plan.hpp"

#include <algorithm>
#include <optional>
#include <stdexcept>

#include "core/int_math.hpp"
#include "kernels/common/kv_buffer/decode_arguments.hpp"
#include "kernels/common/kv_buffer/decode_call.hpp"
#include "kernels/common/kv_buffer/decode_grid.hpp"
#include "kernels/common/kv_buffer/stream_k_ctas.hpp"
#include "kernels/common/schedule_choice.hpp"

namespace pagoda::kernels::kv_buffer {
namespace {

using core::Problem;

// Decoding of a call by clusters of so many CTAs.
Variant decode_variant(const Problem& p, const Shape& shape, int32_t cluster = 1) {
  const bool is_narrow = p.head_dim_qk < shape.depth_qk || p.head_dim_vo < shape.depth_vo;
  const RowKind rows = has_window(p) || is_capped(p) ? RowKind::kDecodeGeneral
                       : p.max_seqlen_q > 1          ? RowKind::kDecodeTokens
                                                     : RowKind::kDecode;
  const Staging staging = is_latent(shape)   ? Staging::kAsyncLatent
                          : has_fp8_cache(p) ? Staging::kAsyncFp8
                          : is_narrow        ? Staging::kAsyncNarrow
                                             : Staging::kAsync;
  return {rows, staging, ScoreClass::kPlain, cluster};
}
constexpr int64_t kL2Bytes = 32 << 20;  // K and V of a section of TileGrid; not measured

// The first of the family's variants, in the order of speed, that serves the call; not decoding.
size_t variant_index(const Problem& p, const Family& family, RowKind rows) {
  const bool has_same_type = p.k.dtype == p.q.dtype;
  const ScoreClass scores = has_same_type ? score_class(p) : ScoreClass::kGeneral;
  const bool has_aligned_rows = has_same_type && has_aligned_kv(p);  // for cp.async
  const bool has_vectors = has_aligned_rows && p.head_dim_qk % 8 == 0 && p.head_dim_vo % 8 == 0;
  for (const Variant& wanted :
       {Variant{rows, Staging::kAsync, scores}, Variant{rows, Staging::kVectors, scores},
        Variant{rows, Staging::kRegisters, ScoreClass::kGeneral}}) {
    if (wanted.staging == Staging::kAsync && !has_aligned_rows) continue;
    if (wanted.staging == Staging::kVectors && !has_vectors) continue;
    if (family.has(wanted)) return family.index_of(wanted);
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
  const schedule::TileGrid grid = grid_of(p, launch);
  const int32_t places = num_sms * launch.tile.ctas_per_sm;
  launch.num_splits = choice.splits(num_kv_splits(p, grid, places, launch.tile.BN),
                                    core::ceil_div(p.max_seqlen_kv_bound, launch.tile.BN));
  launch.ctas = grid.size() * launch.num_splits;
}

// Whether make_only_work (first_work.hpp) serves the call.
bool is_one_token(const Problem& p, const TileConfig& tile) {
  return p.batch == 1 && p.max_seqlen_q == 1 && p.group <= tile.BM &&
         p.max_seqlen_kv_bound / tile.BN < 1 << 20;
}

void set_stream_k(const Problem& p, int32_t num_sms, bool may_split, Launch& launch) {
  const PackedRows packed = PackedRows::of(p.group, launch.tile.block_rows);
  const int64_t most = max_stream_k_ctas(p, packed.tokens, packed.head_tiles, launch.tile.BN);
  const int64_t places = int64_t{num_sms} * launch.tile.ctas_per_sm;
  launch.ctas =
      static_cast<int32_t>(std::min(most, stream_k_ctas(p, packed, launch.tile, num_sms, places)));
  if (!is_one_token(p, launch.tile)) return;
  launch.ctas_per_kv_head = may_split ? std::max(1, launch.ctas / p.num_kv_heads) : 1;
  launch.ctas = launch.ctas_per_kv_head * p.num_kv_heads;
}

void set_decode(const DecodeGrid& grid, Launch& launch) {
  launch.decode_clusters = static_cast<int32_t>(grid.clusters);
  launch.min_tiles = grid.min_tiles;
  launch.shares = grid.shares;
  launch.most_ctas_per_sm = grid.most_ctas_per_sm;
  launch.ctas = static_cast<int32_t>(grid.ctas);
}

// Partial results of decoding take a slot of each CTA, those of token generation two of each CTA
// that fits the GPU at once. A batch of thousands must not take gigabytes of workspace.
constexpr int64_t kMostDecodeWorkspace = int64_t{128} << 20;

// Of a call that the family's kernels for decoding serve; else nullopt.
std::optional<DecodeGrid> find_decode_grid(const Problem& p, const Shape& shape,
                                           const Family& family, int32_t num_sms) {
  const Variant variant = decode_variant(p, shape);
  if (!family.has(variant)) return std::nullopt;
  const TileConfig tile = family.tile_of(shape.depth_qk, shape.depth_vo, variant);
  if (!is_decode(p, shape, tile)) return std::nullopt;
  const DecodeGrid grid = decode_grid(p, tile, num_sms, family.has(decode_variant(p, shape, 2)));
  if (grid.shares == DecodeShares::kOneEach) return grid;
  SplitWorkspace workspace;
  workspace.hold(grid.ctas, tile.BM, tile.depth_vo);
  workspace.finish();
  if (workspace.bytes() > kMostDecodeWorkspace) return std::nullopt;
  return grid;
}

bool is_token_generation(const Launch& launch) { return launch.rows != RowKind::kPrefill; }

// Blocks of partial results, each of BM rows.
int64_t num_slots(const Problem& p, const Launch& launch, bool splits) {
  if (!splits) return 0;
  if (is_decode(launch.rows)) {
    return launch.shares == DecodeShares::kOneEach ? 0 : launch.ctas;
  }
  if (is_token_generation(launch)) {
    const bool has_one_cta = launch.ctas == 1 || launch.ctas_per_kv_head == 1;
    return has_one_cta ? 0 : 2 * int64_t{launch.ctas};
  }
  return launch.num_splits > 1 ? grid_of(p, launch).size() : 0;
}

void size_workspace(const Problem& p, LaunchPlan& plan) {
  for (int32_t i = 0; i < plan.num_launches; ++i) {
    const Launch& launch = plan.launches[i];
    const int64_t slots = num_slots(p, launch, !plan.is_batch_invariant);
    plan.split.hold(slots, launch.tile.BM, launch.tile.depth_vo);
    if (slots > 0 || launch.tile.cluster > 1) plan.num_split_rows = total_rows(p) * p.num_q_heads;
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
  if (p.batch == 0 || total_rows(p) == 0) return plan;  // nothing to write
  std::optional<DecodeGrid> decode;
  const auto add = [&](RowKind rows, int32_t min_rows, int32_t max_rows) {
    Launch& launch = plan->launches[plan->num_launches++];
    launch.variant = is_decode(rows) ? family.index_of(decode_variant(p, shape, decode->cluster))
                                     : variant_index(p, family, rows);
    launch.rows = rows;
    launch.tile = family.tile_of(shape.depth_qk, shape.depth_vo, family.variants[launch.variant]);
    launch.min_rows = min_rows;
    launch.max_rows = max_rows;
    if (rows == RowKind::kPrefill) {
      set_prefill_grid(p, num_sms, choice, launch);
    } else if (is_decode(rows)) {
      set_decode(*decode, launch);
    } else {
      set_stream_k(p, num_sms, choice.may_split(), launch);
    }
    plan->num_work_items += launch.ctas;
  };
  const bool has_long = choice.allows_tiles() && has_prefill_tile(shape.depth_vo) &&
                        (p.max_seqlen_q > kFewTokens || !choice.allows_stream_k());
  const bool has_short =
      choice.allows_stream_k() &&
      (!has_long || may_have_short_rows(p, kFewTokens, plan->is_batch_invariant));
  if (has_short) {
    if (choice.is_automatic() && choice.may_split()) {
      decode = find_decode_grid(p, shape, family, num_sms);
    }
    add(decode ? decode_variant(p, shape).rows : RowKind::kTokenGeneration, 0,
        has_long ? kFewTokens : INT32_MAX);
  }
  if (has_long) add(RowKind::kPrefill, has_short ? kFewTokens + 1 : 0, INT32_MAX);
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
  result.most_ctas_per_sm = launch.most_ctas_per_sm;
  if (is_token_generation(launch)) {
    a.schedule = Schedule::kStreamK;
    a.ctas_per_kv_head = launch.ctas_per_kv_head;
    if (is_decode(launch.rows)) {
      a.decode = decode_arguments(a, launch.decode_clusters, launch.min_tiles, launch.shares,
                                  decode_token_tiles(p, launch.tile), launch.tile.BM,
                                  has_window(p) ? window_keys(p) : INT32_MAX);
    }
  } else {
    a.schedule = Schedule::kTransient;
    a.grid = grid_of(p, launch);
  }
  return result;
}

}  // namespace pagoda::kernels::kv_buffer
