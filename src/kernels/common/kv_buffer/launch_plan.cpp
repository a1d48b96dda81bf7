// Chooses the variants for a call and sets their arguments.
#include "kernels/common/kv_buffer/launch_plan.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <stdexcept>

#include "core/int_math.hpp"
#include "kernels/common/kv_buffer/decode_arguments.hpp"
#include "kernels/common/schedule_choice.hpp"
#include "kernels/common/work_tile.hpp"
#include "mask/make_expression_mask.hpp"

namespace pagoda::kernels::kv_buffer {
namespace {

using core::Problem;

// The model of stream_k_ctas, in us, measured on an H200 (mha_sm80/README.md): a KV tile of a CTA
// while CTAs are few; how many bytes in flight of a multiprocessor keep memory busy: beyond them
// the time of a tile grows with the number of CTAs; and the merge of split rows, a chain of loads
// for each row of a warp and each 16 splits.
constexpr double kTileTime = 0.94, kBusyBytes = 0.82 * (48 << 10), kBusyPower = 0.95;
constexpr double kMergeStart = 0.8, kMergeChain = 1.3;

// Decoding of a call by clusters of so many CTAs.
Variant decode_variant(const Problem& p, const Shape& shape, int32_t cluster = 1) {
  const bool is_narrow = p.head_dim_qk < shape.depth_qk || p.head_dim_vo < shape.depth_vo;
  return {p.max_seqlen_q > 1 ? RowKind::kDecodeTokens : RowKind::kDecode,
          is_narrow ? Staging::kAsyncNarrow : Staging::kAsync, ScoreClass::kPlain, cluster};
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

// Of a CTA. Steps of parts of a tile: as measured with whole tiles of 16 KB.
double bytes_in_flight(const TileConfig& tile) {
  if (!is_async(tile.staging) || tile.k_BK < tile.depth_qk) return 48 << 10;
  return 2.0 * tile.num_stages * tile.BN * tile.depth_qk;
}

// The CTAs, at most `places`, of a stream-K partition for which the model's time is least: a number
// for each row tile, so that none computes parts of two, or all where row tiles are more.
int64_t stream_k_ctas(const Problem& p, const PackedRows& packed, const TileConfig& config,
                      int32_t num_sms, int64_t places) {
  const int32_t tokens = std::min(packed.tokens, p.max_seqlen_q);
  const int64_t row_tiles = int64_t{p.batch} * core::ceil_div(p.max_seqlen_q, packed.tokens) *
                            p.num_kv_heads * packed.head_tiles;
  const int64_t key_tiles = std::max(1, core::ceil_div(p.max_seqlen_kv_bound, config.BN));
  const double busy_ctas = kBusyBytes / bytes_in_flight(config) * num_sms;
  const double rows_of_warp = core::ceil_div(tokens * packed.heads, 4);
  const auto time = [&](int64_t splits, int64_t tiles) {
    const double busy = static_cast<double>(row_tiles * splits) / busy_ctas;
    const double tile = kTileTime * std::max(1.0, std::pow(busy, kBusyPower));
    const auto chains = rows_of_warp * static_cast<double>(core::ceil_div<int64_t>(splits, 16));
    return static_cast<double>(tiles) * tile +
           (splits == 1 ? 0 : kMergeStart + kMergeChain * chains);
  };
  int64_t best = places;
  double least = std::numeric_limits<double>::infinity();
  for (int64_t most = 1; most <= key_tiles && row_tiles * most <= places; ++most) {
    const int64_t tiles = core::ceil_div(key_tiles, most);  // of a CTA
    const int64_t splits = core::ceil_div(key_tiles, tiles);
    if (time(splits, tiles) >= least) continue;
    best = row_tiles * splits;
    least = time(splits, tiles);
  }
  return best;
}

// Whether a sequence's tokens see all its keys but, at most, those of the tokens after them.
bool sees_all_keys(const Problem& p) {
  const mask::IntervalMask interval = mask::make_expression_mask(p.mask).interval;
  const mask::IntervalRule rule = interval.rule;
  return p.seqlens_q_valid.empty() && p.cache_lengths.empty() &&
         interval.valid_lengths == nullptr && rule.chunk == 0 &&
         rule.left >= p.max_seqlen_kv_bound - 1 && p.functor.type == nullptr &&
         score_class(p) == ScoreClass::kPlain;
}

// Whether the kernels for decoding load Q, K and V of this layout (decode_loads.hpp).
bool has_decode_layout(const Problem& p, const Shape& shape, const TileConfig& tile) {
  const auto is_near = [](int64_t stride) { return std::abs(stride) < int64_t{1} << 30; };
  const auto is_multiple = [&](int64_t stride) { return stride % 8 == 0 && is_near(stride); };
  const auto has_near_strides = [&](const core::KVView& view) {
    return is_near(view.outer_stride) && is_near(view.row_stride) && is_near(view.head_stride);
  };
  const bool has_aligned_q = reinterpret_cast<uintptr_t>(p.q.data) % 16 == 0 &&
                             is_multiple(p.q.sequence_stride) && is_multiple(p.q.row_stride) &&
                             is_multiple(p.q.head_stride);
  // One stride from a token to the next, of the same and of another sequence.
  const bool has_even_q =
      p.is_ragged || p.max_seqlen_q == 1 || p.q.sequence_stride == p.max_seqlen_q * p.q.row_stride;
  const int32_t rows_at_once = tile.threads() / 8;  // of AsyncKVBuffer::thread_layout
  const bool has_pages =
      has_even_pages(p, rows_at_once) &&
      (p.block_table.data == nullptr || is_near(p.block_table.row_stride));  // null: CSR
  return p.head_dim_qk <= shape.depth_qk && p.head_dim_vo <= shape.depth_vo && has_aligned_q &&
         has_even_q && has_aligned_kv(p) && has_near_strides(p.k) && has_near_strides(p.v) &&
         p.leftpad_kv.empty() &&
         (p.kv_kind == core::KVKind::kPaged ? has_pages : p.kv_kind == core::KVKind::kDense);
}

// Row tiles of a KV head in decoding: of several tokens, or one.
int32_t decode_token_tiles(const Problem& p, const TileConfig& tile) {
  return core::ceil_div(p.max_seqlen_q, std::max(1, tile.BM / p.group));
}
int64_t decode_row_tiles(const Problem& p, const TileConfig& tile) {
  return int64_t{p.batch} * p.num_kv_heads * decode_token_tiles(p, tile);
}

constexpr int32_t kMostTokenTiles = 4;

bool is_decode(const Problem& p, const Shape& shape, const TileConfig& tile) {
  if (p.group > tile.BM) return false;
  const int32_t token_tiles = decode_token_tiles(p, tile);
  const bool are_few = token_tiles <= kMostTokenTiles && p.max_seqlen_q <= kFewTokens;
  if (token_tiles > 1 && !are_few) return false;
  // Of a sequence: SmallDivisor is exact. Of the batch: 32 bits hold them.
  const int64_t tiles =
      int64_t{p.num_kv_heads} * token_tiles * (p.max_seqlen_kv_bound / tile.BN + 1);
  return has_decode_tile(shape) && p.k.dtype == p.q.dtype && tiles < 1 << 20 &&
         p.batch * tiles < 1 << 30 && sees_all_keys(p) && has_decode_layout(p, shape, tile);
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

// Where row tiles are more than CTAs fit the GPU at once, or have several waves of KV splits, a CTA
// takes kFewestTiles KV tiles or more, whatever the bound of the lengths.
constexpr int32_t kFewestTiles = 16;
// So many waves of row tiles end so far apart that the last one is no matter.
constexpr int64_t kManyWaves = 4;

struct DecodeGrid {
  double time = 0;       // of the model, us, where row tiles are few
  int32_t cluster = 1;   // CTAs
  int64_t clusters = 1;  // that the KV tiles are divided among
  int64_t ctas = 1;
  int32_t min_tiles = 1;
  DecodeShares shares = DecodeShares::kEven;
  int32_t most_ctas_per_sm = 0;
};

// GPCs differ in their numbers of multiprocessors, so that a GPU holds fewer CTAs in clusters of
// eight than it has places: so many of them were there at once.
constexpr double kPlacesOfClusters = 10 / 11.0;

// Whether clusters of eight, `splits` of them for each row tile, suit a batch, whose sequences may
// have any lengths up to the bound. Where a row tile has one, those of longer sequences become more
// CTAs than the GPU holds, while short ones leave most of theirs empty (mha_sm90_decode/README.md
// has the times): so one where they leave each multiprocessor at most one CTA, and half of them one
// where sequences may be long.
constexpr int32_t kShort = 2048;
bool suits_batch(const Problem& p, int64_t row_tiles, int64_t splits, int32_t num_sms) {
  if (p.batch == 1 || splits > 1) return true;
  const int64_t ctas = 8 * row_tiles;
  return ctas <= num_sms && (p.max_seqlen_kv_bound <= kShort || 2 * ctas >= num_sms);
}

// The model of the time of decoding where there are clusters, in us, fitted to an H200
// (mha_sm90_decode/README.md). CTAs run in waves of as many as fit the GPU at once. A KV tile takes
// kDecodeTileTime while CTAs are few; from about kBusyCtas of them a multiprocessor on, with 48 KB
// in flight each, its time grows with their number, and a little more where some multiprocessors
// have a CTA more than others. The start of a wave and of each CTA that a multiprocessor has in it,
// and the part kShareOfCta of all else for each but the first.
constexpr double kDecodeTileTime = 0.63, kBusyCtas = 0.6, kBusySharpness = 2.4;
constexpr double kUnevenPower = 0.17, kWaveStart = 1.0, kCtaStart = 0.3, kShareOfCta = 0.02;
// The merge in a cluster; in clusters and between them; between CTAs, and there for each row of a
// warp and 16 splits.
constexpr double kClusterMerge = 0.5, kClustersMerge = 2.9, kSplitMerge = 2.1, kSplitChain = 0.8;
constexpr int32_t kMostCtasInClusters = 3;  // of a multiprocessor

// Of a CTA of decoding. Narrow rows are fewer bytes than the tile has room for.
double decode_bytes_in_flight(const Problem& p, const TileConfig& tile) {
  return bytes_in_flight(tile) * (p.head_dim_qk + p.head_dim_vo) / (tile.depth_qk + tile.depth_vo);
}

// A wave of CTAs, `of_sm` of them for each multiprocessor, that have `tiles` KV tiles each.
double wave_time(const Problem& p, const TileConfig& tile, double of_sm, int64_t tiles) {
  const double busy_ctas = kBusyCtas * (48 << 10) / decode_bytes_in_flight(p, tile);
  const double busy = std::pow(of_sm / busy_ctas, kBusySharpness);
  double of_tile = kDecodeTileTime * std::pow(1 + busy, 1 / kBusySharpness);
  of_tile *= 1 + kShareOfCta * std::max(0.0, of_sm - 1);
  if (of_sm > kBusyCtas) of_tile *= std::pow(std::ceil(of_sm) / of_sm, kUnevenPower);
  const int64_t parts = tiles * (tile.depth_qk / tile.k_BK);  // each as long as a tile of d128
  return static_cast<double>(parts) * of_tile + kWaveStart + kCtaStart * of_sm;
}

// How the row tiles of a call are divided: each into `splits` clusters of `cluster` CTAs, of which a
// multiprocessor has up to `per_sm` at once.
struct Division {
  int32_t cluster = 1;
  int64_t splits = 1;
  int32_t per_sm = 1;

  [[nodiscard]] int64_t ctas(int64_t row_tiles) const { return row_tiles * splits * cluster; }
};

double decode_time(const Problem& p, const TileConfig& tile, int32_t num_sms,
                   const Division& division) {
  const int64_t key_tiles = std::max(1, core::ceil_div(p.max_seqlen_kv_bound, tile.BN));
  const int64_t tiles =
      core::ceil_div(core::ceil_div(key_tiles, division.splits), int64_t{division.cluster});
  const int64_t ctas = division.ctas(decode_row_tiles(p, tile));
  const int64_t places = int64_t{num_sms} * division.per_sm;
  double time = static_cast<double>(ctas / places) * wave_time(p, tile, division.per_sm, tiles);
  if (const int64_t last = ctas % places; last > 0) {
    time += wave_time(p, tile, static_cast<double>(last) / num_sms, tiles);
  }
  if (division.cluster > 1) {
    time += division.splits == 1 ? kClusterMerge : kClustersMerge;
  } else if (division.splits > 1) {
    const int32_t rows = std::min(p.max_seqlen_q * p.group, tile.BM);
    const int32_t rows_of_warp = core::ceil_div(rows, tile.warps_n);
    const int64_t chains = rows_of_warp * core::ceil_div(division.splits, int64_t{16});
    const double merge = kSplitMerge + kSplitChain * static_cast<double>(chains);
    time += merge * std::max(1.0, static_cast<double>(ctas) / static_cast<double>(places));
  }
  return time;
}

// Several row tiles of a KV head load its keys several times, so packed rows of mha_sm90 may be
// faster. These take kTimeOfByte for each byte of keys and values, in us, and to begin and to merge
// kPackedRowsStart longer than row tiles (mha_sm90_decode/README.md). Up to kFewRowTileBytes row
// tiles are the faster ones.
constexpr int64_t kFewRowTileBytes = 20 << 20;
constexpr double kTimeOfByte = 0.25e-6, kPackedRowsStart = 11.2;

// The division of the least time.
Division find_division(const Problem& p, const TileConfig& tile, int32_t num_sms) {
  const DecodeOccupancy occupancy = decode_occupancy(tile.depth_qk);
  const int64_t row_tiles = decode_row_tiles(p, tile);
  const int64_t key_tiles = std::max(1, core::ceil_div(p.max_seqlen_kv_bound, tile.BN));
  Division best{.per_sm = occupancy.fewest};
  double least = decode_time(p, tile, num_sms, best);
  const auto consider = [&](const Division& division) {
    const double time = decode_time(p, tile, num_sms, division);
    if (time >= least) return;
    least = time;
    best = division;
  };
  // Whole row tiles, more of them at once or fewer.
  for (int32_t per_sm = 2; per_sm <= occupancy.most; ++per_sm) consider({.per_sm = per_sm});
  // Pairs, but not a third CTA of head dim 128 on some multiprocessors: measured, slower.
  const Division pairs{.cluster = 2, .per_sm = std::min(occupancy.most, kMostCtasInClusters)};
  const int64_t of_pairs = pairs.ctas(row_tiles);
  if (of_pairs <= int64_t{num_sms} * occupancy.fewest ||
      of_pairs > int64_t{num_sms} * pairs.per_sm) {
    consider(pairs);
  }
  const auto has_splits = [&](const Division& division, int64_t most_ctas) {
    return division.ctas(row_tiles) <= most_ctas && division.splits <= key_tiles;
  };
  // Several waves of splits: measured where row tiles are as many as multiprocessors.
  const int64_t places = int64_t{num_sms} * occupancy.most;
  const int64_t most_splits = key_tiles / kFewestTiles;
  // Of many splits not each number: a plan should not take longer than a call.
  constexpr int64_t kSplitsEach = 16;
  for (Division split{.splits = 2, .per_sm = occupancy.most};;
       split.splits += std::max(int64_t{1}, split.splits / kSplitsEach)) {
    const bool has_waves = row_tiles >= num_sms && split.splits <= most_splits &&
                           has_splits(split, kManyWaves * places);
    if (!has_waves && !has_splits(split, places)) break;
    consider(split);
  }
  const int32_t in_clusters = std::min(occupancy.fewest, kMostCtasInClusters);
  const auto most_in_clusters = static_cast<int64_t>(kPlacesOfClusters * num_sms * in_clusters);
  for (Division split{.cluster = 8, .per_sm = in_clusters}; has_splits(split, most_in_clusters);
       ++split.splits) {
    if (suits_batch(p, row_tiles, split.splits, num_sms)) consider(split);
  }
  return best;
}

DecodeGrid cluster_grid(const Problem& p, const TileConfig& tile, int32_t num_sms) {
  const int64_t row_tiles = decode_row_tiles(p, tile);
  const Division division = find_division(p, tile, num_sms);
  const int64_t ctas = division.ctas(row_tiles), places = int64_t{num_sms} * division.per_sm;
  DecodeGrid grid{.time = decode_time(p, tile, num_sms, division),
                  .cluster = division.cluster,
                  .clusters = row_tiles * division.splits};
  const bool has_waves = row_tiles > int64_t{num_sms} * tile.ctas_per_sm || ctas > places;
  if (has_waves) grid.min_tiles = kFewestTiles;
  const bool is_pair = division.cluster == 2 && p.max_seqlen_q == 1;
  const bool is_whole = division.cluster == 1 && division.splits == 1;
  if ((is_pair || (is_whole && has_waves)) && ctas < kManyWaves * places) {
    grid.shares = DecodeShares::kHalvesUnequal;
  }
  if (is_whole) grid.most_ctas_per_sm = division.per_sm;
  // Few CTAs of a cluster on a multiprocessor each: else some get two of them.
  if (division.cluster > 2 && 2 * ctas <= num_sms) grid.most_ctas_per_sm = 1;
  return grid;
}

// Whether no sequence is so long that it is worth several clusters for each of its row tiles: the
// merge of those takes as long as kShortTiles KV tiles. Where row tiles are more than the CTAs that
// fit the GPU, clusters take kFewestTiles or more anyway.
bool has_short_tiles(const Problem& p, const TileConfig& tile, const DecodeGrid& grid) {
  constexpr int32_t kShortTiles = 8;
  const int32_t key_tiles = core::ceil_div(p.max_seqlen_kv_bound, tile.BN);
  const int32_t most = grid.min_tiles + grid.min_tiles / 4 - 1;  // num_splits (decode_work.hpp)
  return key_tiles <= std::max(most, kShortTiles * grid.cluster) && p.max_seqlen_kv_bound <= kShort;
}

DecodeGrid decode_grid(const Problem& p, const TileConfig& tile, int32_t num_sms,
                       bool has_clusters) {
  const int64_t places = int64_t{num_sms} * tile.ctas_per_sm;
  const int64_t row_tiles = decode_row_tiles(p, tile);
  DecodeGrid grid;
  if (has_clusters) {
    grid = cluster_grid(p, tile, num_sms);
  } else if (row_tiles <= places) {
    const PackedRows packed = PackedRows::of(p.group, tile.block_rows);
    grid.clusters = stream_k_ctas(p, packed, tile, num_sms, places);
    if (grid.clusters == row_tiles) grid.most_ctas_per_sm = tile.ctas_per_sm;
  } else if (const int32_t per_sm = unsplit_ctas_per_sm(row_tiles, tile.depth_qk, num_sms);
             per_sm > 0) {
    grid.clusters = row_tiles;
    grid.min_tiles = kFewestTiles;
    grid.most_ctas_per_sm = per_sm;
    if (row_tiles < kManyWaves * num_sms * per_sm) grid.shares = DecodeShares::kHalvesUnequal;
  } else {
    const int64_t most_splits = std::max(1, p.max_seqlen_kv_bound / (kFewestTiles * tile.BN));
    grid.clusters = row_tiles * std::min(most_splits, core::ceil_div(5 * places, row_tiles));
    grid.min_tiles = kFewestTiles;
  }
  if (grid.clusters == row_tiles && (p.batch == 1 || has_short_tiles(p, tile, grid))) {
    grid.shares = DecodeShares::kOneEach;
    grid.ctas = row_tiles * grid.cluster;
    return grid;
  }
  // Sequences of different lengths round up to more clusters: up to one of each row tile. Those
  // that get no work end at once.
  const bool may_halve = grid.shares == DecodeShares::kHalvesUnequal;
  grid.ctas = (grid.clusters * (may_halve ? 2 : 1) + (p.batch > 1 ? row_tiles : 0)) * grid.cluster;
  return grid;
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

int32_t unsplit_ctas_per_sm(int64_t row_tiles, int depth, int32_t num_sms) {
  // Of the CTAs that fit: those that keep memory busy while earlier waves drain; where the first
  // wave is the last one, nothing evens out how the CTAs are spread.
  constexpr double kLeastLast = 0.6, kLeastOnly = 0.9;
  constexpr int64_t kMostFirst = 3;  // waves of as many as fit, from which these are faster
  const DecodeOccupancy occupancy = decode_occupancy(depth);
  const auto is_last_full = [&](int32_t per_sm) {
    const int64_t places = int64_t{num_sms} * per_sm;
    const int64_t last = row_tiles % places;
    const double least = row_tiles < places ? kLeastOnly : kLeastLast;
    return last == 0 || static_cast<double>(last) >= least * static_cast<double>(places);
  };
  const int64_t most_places = int64_t{num_sms} * occupancy.most;
  if (row_tiles >= kMostFirst * most_places && is_last_full(occupancy.most)) return occupancy.most;
  for (int32_t per_sm = occupancy.fewest; per_sm <= occupancy.most; ++per_sm) {
    if (is_last_full(per_sm)) return per_sm;
  }
  return row_tiles >= kManyWaves * most_places ? occupancy.most : 0;
}

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

int decode_depth(const Problem& p) {
  const int32_t larger = std::max(p.head_dim_qk, p.head_dim_vo);
  if (larger > 128) return 256;
  return larger > 64 ? 128 : 64;
}

bool is_decode_call(const Problem& p) {
  const int depth = decode_depth(p);
  const Shape shape{"", p.q.dtype, depth, depth};
  return is_decode(p, shape, decode_tile(depth)) &&
         decode_row_tiles(p, decode_tile(depth)) <= kMostDecodeRowTiles;
}

bool suits_decode_rows(const Problem& p, int32_t num_sms) {
  const TileConfig tile = decode_tile(decode_depth(p));
  const int32_t token_tiles = decode_token_tiles(p, tile);
  if (token_tiles <= 1) return true;
  const int64_t row_tiles = decode_row_tiles(p, tile);
  const int64_t key_bytes = int64_t{p.head_dim_qk + p.head_dim_vo} * size_bytes(p.k.dtype);
  const int64_t bytes = row_tiles * p.max_seqlen_kv_bound * key_bytes;
  if (bytes <= kFewRowTileBytes) return true;
  const bool is_narrow = p.head_dim_qk < tile.depth_qk || p.head_dim_vo < tile.depth_vo;
  if (is_narrow || row_tiles > int64_t{num_sms} * tile.ctas_per_sm) return false;
  const int64_t bytes_once = bytes / token_tiles;
  const double loads = static_cast<double>(bytes_once) * kTimeOfByte;
  return cluster_grid(p, tile, num_sms).time <= loads + kPackedRowsStart;
}

core::Fit fit_decode(const Shape& shape, const Problem& p, const Options& options,
                     std::string* reason) {
  using core::Fit;
  const Fit fit = fit_of(p, shape.dtype, shape.depth_qk, shape.depth_vo, true, reason);
  if (fit != Fit::kServes) return fit;
  const ScheduleChoice choice = ScheduleChoice::of(options);
  if (!choice.is_automatic() || options.num_kv_splits != 0 || options.is_batch_invariant) {
    return core::unfit(Fit::kFeatures, reason, [] {
      return "it chooses schedule and KV splits itself, and by the whole batch";
    });
  }
  const TileConfig tile = decode_tile(shape.depth_qk);
  if (!is_decode(p, shape, tile)) {
    return core::unfit(Fit::kFeatures, reason, [] {
      return "it is for up to four times 16 rows of a KV head, whose tokens see all keys up to "
             "their own, without score mods, over a dense cache or pages of 16, 32, .. keys, with "
             "rows at multiples of 16 bytes";
    });
  }
  if (decode_row_tiles(p, tile) > kMostDecodeRowTiles) {
    return core::unfit(Fit::kFeatures, reason, [] {
      return "it has workspace for " + std::to_string(kMostDecodeRowTiles) +
             " row tiles of all sequences";
    });
  }
  return Fit::kServes;
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
                                  decode_token_tiles(p, launch.tile), launch.tile.BM);
    }
  } else {
    a.schedule = Schedule::kTransient;
    a.grid = grid_of(p, launch);
  }
  return result;
}

}  // namespace pagoda::kernels::kv_buffer
