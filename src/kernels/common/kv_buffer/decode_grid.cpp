// How decoding divides row tiles, by a model of the time of waves of CTAs.
#include "kernels/common/kv_buffer/decode_grid.hpp"

#include <algorithm>
#include <cmath>

#include "core/int_math.hpp"
#include "kernels/common/kv_buffer/decode_call.hpp"
#include "kernels/common/kv_buffer/stream_k_ctas.hpp"

namespace pagoda::kernels::kv_buffer {
namespace {

using core::Problem;

// Where row tiles are more than CTAs fit the GPU at once, or have several waves of KV splits, a CTA
// takes kFewestTiles KV tiles or more, whatever the bound of the lengths.
constexpr int32_t kFewestTiles = 16;
// So many waves of row tiles end so far apart that the last one is no matter.
constexpr int64_t kManyWaves = 4;

// GPCs differ in their numbers of multiprocessors, so that a GPU holds fewer CTAs in clusters of
// eight, or four, than it has places: so many of them were there at once.
constexpr double kPlacesOfClusters = 10 / 11.0;

// Whether `ctas` CTAs in large clusters, `splits` of these for each row tile, suit a batch, whose
// sequences may have any lengths up to the bound. Where a row tile has one, those of longer
// sequences become more CTAs (mha_sm90_decode/README.md has the times). So of up to kShort KV tiles
// any that fit the GPU at once, over fp8 caches, which were not measured, at most as many CTAs as
// multiprocessors. Of more at least half as many, for with fewer several clusters for each row tile
// are faster.
constexpr int32_t kShort = 32;  // 2,048 keys of 16 bits
bool is_short(const Problem& p, const TileConfig& tile) {
  return core::ceil_div(most_decode_keys(p), tile.BN) <= kShort;
}
bool suits_batch(const Problem& p, const TileConfig& tile, int64_t ctas, int64_t splits,
                 int32_t num_sms) {
  if (p.batch == 1 || splits > 1) return true;
  if (is_short(p, tile)) return !has_fp8_cache(p) || ctas <= num_sms;
  return 2 * ctas >= num_sms;
}

// The model of the time of decoding where there are clusters, in us, fitted to an H200
// (mha_sm90_decode/README.md). CTAs run in waves of as many as fit the GPU at once. A KV tile takes
// kDecodeTileTime while CTAs are few; from about kBusyCtas of them a multiprocessor on, with 48 KB
// in flight each, its time grows with their number, and a little more where some multiprocessors
// have a CTA more than others. One of e4m3, of as many bytes but twice the instructions, takes at
// least kFp8TileTime at head dim 128. The start of a wave and of each CTA that a multiprocessor has
// in it, and the part kShareOfCta of all else for each but the first.
constexpr double kDecodeTileTime = 0.63, kBusyCtas = 0.6, kBusySharpness = 2.4;
constexpr double kFp8TileTime = 1.17, kFp8TileTime64 = 0.75;
// A KV tile of latent rows, of 72 KB.
constexpr double kLatentTileTime = 1.45, kLatentBusyCtas = 0.9, kLatentSharpness = 1.5;
constexpr double kUnevenPower = 0.17, kWaveStart = 1.0, kCtaStart = 0.3, kShareOfCta = 0.02;
// The merge in a cluster; in clusters and between them; between CTAs, and there for each row of a
// warp and 16 splits.
constexpr double kClusterMerge = 0.5, kClustersMerge = 2.9, kSplitMerge = 2.1, kSplitChain = 0.8;
// Of latent rows, which have 512 columns: between clusters, and for each of them; between CTAs, and
// where all multiprocessors have one.
constexpr double kLatentClustersMerge = 2.0, kLatentMergeOfEach = 0.2;
constexpr double kLatentSplitMerge = 5.0, kLatentMergeOfAll = 7.0;
constexpr int32_t kMostCtasInClusters = 3;  // of a multiprocessor

// Of a CTA of decoding. Narrow rows are fewer bytes than the tile has room for.
double decode_bytes_in_flight(const Problem& p, const TileConfig& tile) {
  return bytes_in_flight(tile) * (p.head_dim_qk + p.head_dim_vo) / (tile.depth_qk + tile.depth_vo);
}

// A KV tile where a multiprocessor has `of_sm` CTAs on average.
double tile_time(const Problem& p, const TileConfig& tile, double of_sm) {
  const auto grown = [&](double of_few, double busy_ctas, double sharpness) {
    return of_few * std::pow(1 + std::pow(of_sm / busy_ctas, sharpness), 1 / sharpness);
  };
  if (tile.is_latent()) return grown(kLatentTileTime, kLatentBusyCtas, kLatentSharpness);
  const double busy_ctas = kBusyCtas * (48 << 10) / decode_bytes_in_flight(p, tile);
  double of_tile = grown(kDecodeTileTime, busy_ctas, kBusySharpness);
  if (has_fp8_cache(p)) {
    of_tile = std::max(of_tile, tile.depth_qk <= 64 ? kFp8TileTime64 : kFp8TileTime);
  }
  of_tile *= 1 + kShareOfCta * std::max(0.0, of_sm - 1);
  if (of_sm > kBusyCtas) of_tile *= std::pow(std::ceil(of_sm) / of_sm, kUnevenPower);
  return of_tile * tile.k_steps();  // each as long as a tile of d128
}

// A wave of CTAs, `of_sm` of them for each multiprocessor, that have `tiles` KV tiles each.
double wave_time(const Problem& p, const TileConfig& tile, double of_sm, int64_t tiles) {
  return static_cast<double>(tiles) * tile_time(p, tile, of_sm) + kWaveStart + kCtaStart * of_sm;
}

// How the row tiles of a call are divided: each into `splits` clusters of `cluster` CTAs, of which
// a multiprocessor has up to `per_sm` at once.
struct Division {
  int32_t cluster = 1;
  int64_t splits = 1;
  int32_t per_sm = 1;

  [[nodiscard]] int64_t ctas(int64_t row_tiles) const { return row_tiles * splits * cluster; }
};

// KV tiles of the longest sequence.
int64_t most_key_tiles(const Problem& p, const TileConfig& tile) {
  return std::max(1, core::ceil_div(most_decode_keys(p), tile.BN));
}

// The merges of a call whose CTAs run in `waves`.
double merge_time(const Problem& p, const TileConfig& tile, const Division& division,
                  double waves) {
  const auto splits = static_cast<double>(division.splits);
  if (division.cluster > 1) {
    if (division.splits == 1) return kClusterMerge;
    return tile.is_latent() ? kLatentClustersMerge + kLatentMergeOfEach * splits : kClustersMerge;
  }
  if (division.splits == 1) return 0;
  if (tile.is_latent()) return kLatentSplitMerge + kLatentMergeOfAll * waves;
  const int32_t rows = std::min(p.max_seqlen_q * p.group, tile.BM);
  const int32_t rows_of_warp = core::ceil_div(rows, tile.warps_n);
  const int64_t chains = rows_of_warp * core::ceil_div(division.splits, int64_t{16});
  const double merge = kSplitMerge + kSplitChain * static_cast<double>(chains);
  return merge * std::max(1.0, waves);
}

double decode_time(const Problem& p, const TileConfig& tile, int32_t num_sms, int64_t key_tiles,
                   const Division& division) {
  const int64_t tiles =
      core::ceil_div(core::ceil_div(key_tiles, division.splits), int64_t{division.cluster});
  const int64_t ctas = division.ctas(decode_row_tiles(p, tile));
  const int64_t places = int64_t{num_sms} * division.per_sm;
  const int64_t whole_waves = ctas / places, last = ctas % places;
  double time = static_cast<double>(whole_waves) * wave_time(p, tile, division.per_sm, tiles);
  if (last > 0) time += wave_time(p, tile, static_cast<double>(last) / num_sms, tiles);
  const double waves = static_cast<double>(ctas) / static_cast<double>(places);
  return time + merge_time(p, tile, division, waves);
}

// Several row tiles of a KV head load its keys several times, so packed rows of mha_sm90 may be
// faster. These take kTimeOfByte for each byte of keys and values, in us, and to begin and to merge
// kPackedRowsStart longer than row tiles (mha_sm90_decode/README.md). Up to kFewRowTileBytes row
// tiles are the faster ones.
constexpr int64_t kFewRowTileBytes = 20 << 20;
constexpr double kTimeOfByte = 0.25e-6, kPackedRowsStart = 11.2;

// Several row tiles of 16 latent rows load the keys several times, row tiles of 64 in mha_sm90 less
// often. These take kTimeOfLatentByte for each byte of the keys, and kLatentRowsStart longer.
constexpr double kTimeOfLatentByte = 0.31e-6, kLatentRowsStart = 12.6;

constexpr int32_t kFewestAtOnce = 2;  // single CTAs of a multiprocessor

// The division of the least time.
Division find_division(const Problem& p, const TileConfig& tile, int32_t num_sms) {
  const DecodeOccupancy occupancy = decode_occupancy(tile.depth_qk);
  const int64_t row_tiles = decode_row_tiles(p, tile);
  const int64_t key_tiles = most_key_tiles(p, tile);
  Division best{.per_sm = std::min(kFewestAtOnce, occupancy.most)};
  double least = decode_time(p, tile, num_sms, key_tiles, best);
  const auto consider = [&](const Division& division, double margin = 1) {
    const double time = decode_time(p, tile, num_sms, key_tiles, division);
    if (margin * time >= least) return;
    least = time;
    best = division;
  };
  // Whole row tiles, no more of them at once than they need: else some multiprocessors have most.
  for (int32_t per_sm = kFewestAtOnce + 1; per_sm <= occupancy.most; ++per_sm) {
    consider({.per_sm = per_sm});
  }
  // Pairs, but not a third CTA of head dim 128 on some multiprocessors: measured, slower. Of few
  // waves, for each CTA has a slot of the workspace.
  const Division pairs{.cluster = 2, .per_sm = std::min(occupancy.most, kMostCtasInClusters)};
  const int64_t of_pairs = pairs.ctas(row_tiles), at_once = int64_t{num_sms} * pairs.per_sm;
  if (of_pairs <= int64_t{num_sms} * occupancy.fewest ||
      (of_pairs > at_once && of_pairs < kManyWaves * at_once)) {
    // In several waves, 79 x 12,172 keys of 64/4 heads of 64: by the model 1 % sooner done than
    // single CTAs, measured 279 us for 255.
    const bool has_several = of_pairs > at_once && tile.depth_qk <= 64;
    consider(pairs, has_several ? 1.015 : 1);
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
  const auto consider_clusters = [&](int32_t size) {
    for (Division split{.cluster = size, .per_sm = in_clusters};
         has_splits(split, most_in_clusters); ++split.splits) {
      if (suits_batch(p, tile, split.ctas(row_tiles), split.splits, num_sms)) consider(split);
    }
  };
  consider_clusters(8);
  if (tile.is_latent()) consider_clusters(4);
  return best;
}

DecodeGrid cluster_grid(const Problem& p, const TileConfig& tile, int32_t num_sms) {
  const int64_t row_tiles = decode_row_tiles(p, tile);
  const Division division = find_division(p, tile, num_sms);
  const int64_t ctas = division.ctas(row_tiles), places = int64_t{num_sms} * division.per_sm;
  DecodeGrid grid{.cluster = division.cluster, .clusters = row_tiles * division.splits};
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
  const int32_t key_tiles = core::ceil_div(most_decode_keys(p), tile.BN);
  const int32_t most = grid.min_tiles + grid.min_tiles / 4 - 1;  // num_splits (decode_work.hpp)
  return key_tiles <= std::max(most, kShortTiles * grid.cluster) && is_short(p, tile);
}

}  // namespace

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

bool suits_decode_rows(const Problem& p, int32_t num_sms) {
  const TileConfig tile = decode_tile_of(p, decode_depth(p));
  const int32_t token_tiles = decode_token_tiles(p, tile);
  if (token_tiles <= 1) return true;
  const int64_t row_tiles = decode_row_tiles(p, tile);
  const int64_t key_bytes = int64_t{p.head_dim_qk + p.head_dim_vo} * size_bytes(p.k.dtype);
  const int64_t bytes = row_tiles * most_decode_keys(p) * key_bytes;
  if (bytes <= kFewRowTileBytes) return true;
  const bool is_narrow = p.head_dim_qk < tile.depth_qk || p.head_dim_vo < tile.depth_vo;
  if (is_narrow) return false;
  if (has_window(p)) return true;  // packed rows take 10 to 20 us longer with one
  if (row_tiles > int64_t{num_sms} * tile.ctas_per_sm) return false;
  const int64_t bytes_once = bytes / token_tiles;
  const double loads = static_cast<double>(bytes_once) * kTimeOfByte;
  const Division division = find_division(p, tile, num_sms);
  return decode_time(p, tile, num_sms, most_key_tiles(p, tile), division) <=
         loads + kPackedRowsStart;
}

bool suits_latent_decode(const Problem& p, int32_t num_sms) {
  const TileConfig tile = decode_tile_of(p, decode_depth(p));
  if (decode_token_tiles(p, tile) <= 1) return true;
  const int64_t rows = int64_t{p.batch} * p.num_kv_heads * most_decode_keys(p);
  const auto bytes = static_cast<double>(rows * p.head_dim_qk * size_bytes(p.k.dtype));
  const Division division = find_division(p, tile, num_sms);
  return decode_time(p, tile, num_sms, most_key_tiles(p, tile), division) <=
         bytes * kTimeOfLatentByte + kLatentRowsStart;
}

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

}  // namespace pagoda::kernels::kv_buffer
