// Arguments, tensor maps and workspace of an attention launch.
#include "kernels/common/call_arguments.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "core/int_math.hpp"
#include "kernels/common/functor_family.hpp"
#include "mask/make_expression_mask.hpp"
#include "operand/paged_row_indices.hpp"

namespace pagoda::kernels {
namespace {

using core::Problem;

constexpr int64_t kAlignment = 128;     // bytes, of each array of the workspace
constexpr int32_t kMinSplitTiles = 4;   // KV tiles of a split: fewer do not pay for the merge
constexpr int32_t kMinSharedTiles = 2;  // of a split in a shared merge
constexpr int32_t kMostAutomaticSplits = 32;
// SplitModel, in the time of a KV tile: what a work tile costs besides its KV tiles; what more a
// split one costs, which stores its partial result; and what the last of a row tile's work tiles
// takes to read one of them. If all of them merge, that takes kSharedCost and kSharedMergeCost for
// each: they wait for each other.
constexpr double kTileCost = 2, kPartCost = 2, kMergeCost = 1;
constexpr double kSharedCost = 2, kSharedMergeCost = 0.06;
constexpr int32_t kMostSplitsOfOne = 3;  // up to so many are merged by one CTA
// More splits are taken where they need less than this part of the time: in general; of a shared
// merge, each on a multiprocessor of its own; the same, if two splits then share a multiprocessor,
// where a KV tile takes up to 1.6 times as long; of the row tiles of the last wave; and of those of
// unequal lengths.
constexpr double kLeastGain = 0.92, kLeastSharedGain = 0.97, kLeastPairedGain = 0.75,
                 kLeastLastGain = 0.99, kLeastUnequalGain = 0.97;
constexpr int32_t kMinShareTiles = 8;  // KV tiles of an equal share
// K and V that several row tiles read in equal shares: an H100 or H200 has 50 MB of L2.
constexpr int64_t kL2BytesOfShares = int64_t{40} << 20;
constexpr int32_t kMostLastRounds = 2;    // of split work tiles: bounds the workspace
constexpr double kMostUnequalRounds = 9;  // likewise, of unequal lengths

// Rows of a box of K or V; 0 where pages and tiles do not divide each other.
int32_t box_rows(const Problem& p, int32_t BN) {
  const int32_t piece =
      p.kv_kind == core::KVKind::kPaged ? operand::kv_copy_rows(p.page_size, BN) : 0;
  return piece == 0 ? BN : std::max(piece, 0);
}

// Distance from one sequence or page to the next in row strides; 0 where it is no whole number.
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

// The fields that the maps of all operands share.
arch::TensorMapSpec map_of(DType dtype, const void* data, int32_t rank, arch::Swizzle swizzle) {
  arch::TensorMapSpec spec;
  spec.type = map_type(dtype);
  spec.rank = rank;
  spec.address = reinterpret_cast<uint64_t>(data);
  spec.box[0] = swizzle_width_bytes(swizzle) / static_cast<uint32_t>(size_bytes(dtype));
  spec.swizzle = swizzle;
  spec.l2_promotion = arch::L2Promotion::k128B;
  return spec;
}

uint64_t stride_bytes(DType dtype, int64_t elements) {
  return static_cast<uint64_t>(elements * size_bytes(dtype));
}

RowsView rows_view(const core::RowView& view) {
  return {view.sequence_stride, view.row_stride, view.head_stride};
}

operand::ScaleFactors scale_factors(const core::HeadScales& scales) {
  return {scales.shared, scales.values, scales.sequence_stride, scales.head_stride};
}

operand::KeyRows key_rows(const Problem& p) {
  operand::KeyRows keys;
  keys.leftpad = p.leftpad_kv.empty() ? nullptr : p.leftpad_kv.data();
  if (p.kv_kind == core::KVKind::kDense) {
    keys.kind = operand::KeyRowsKind::kDense;
    keys.dense.rows_per_batch = static_cast<uint32_t>(outer_rows(p, p.k));
    keys.dense.keys_per_batch = static_cast<uint32_t>(p.max_seqlen_kv);
    keys.dense.lengths = p.seqlens_kv.data();
  } else if (p.kv_kind == core::KVKind::kRagged) {
    keys.kind = operand::KeyRowsKind::kRagged;
    keys.ragged.offsets = p.cu_seqlens_kv.data();
    keys.ragged.lengths = p.seqlens_kv.empty() ? nullptr : p.seqlens_kv.data();
  } else {
    keys.kind = operand::KeyRowsKind::kPaged;
    keys.paged.page_size = p.page_size;
    keys.paged.row_stride = static_cast<uint32_t>(outer_rows(p, p.k));
    if (p.block_table.data != nullptr) {
      keys.paged.pages = p.block_table.data;
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

Sequences sequences_of(const Problem& p) {
  Sequences sequences;
  sequences.batch = p.batch;
  sequences.padded_rows = p.max_seqlen_q;
  sequences.cu_rows = p.is_ragged ? p.cu_seqlens_q.data() : nullptr;
  sequences.valid_rows = p.seqlens_q_valid.empty() ? nullptr : p.seqlens_q_valid.data();
  sequences.q_positions = p.cache_lengths.empty() ? nullptr : p.cache_lengths.data();
  sequences.keys = key_rows(p);
  return sequences;
}

// Row tiles of a call: a ragged grid has up to one empty entry for each sequence.
double expected_tiles(const Problem& p, const schedule::TileGrid& grid) {
  const bool is_equal = grid.rows == int64_t{grid.batch} * grid.most_rows;
  if (grid.cu_rows == nullptr || is_equal) return grid.size();
  double tiles = 0;
  if (p.has_host_lengths) {
    for (int32_t b = 0; b < p.batch; ++b) tiles += core::ceil_div(p.num_rows(b), grid.tile_rows);
  } else {  // the last tile of a sequence is half full
    tiles = static_cast<double>(grid.rows) / grid.tile_rows + 0.5 * p.batch;
    if (p.batch == 1) tiles = core::ceil_div(grid.rows, grid.tile_rows);
  }
  return tiles * grid.num_heads;
}

// How long `num_ctas` CTAs take for the row tiles of `grid`, in KV tiles.
class SplitModel {
 public:
  SplitModel(const Problem& p, const schedule::TileGrid& grid, int32_t num_ctas,
             const SplitTile& tile)
      : tiles_(expected_tiles(p, grid)), num_ctas_(num_ctas), tile_(tile), grid_(grid) {
    const int32_t keys = max_visible_keys(p, grid.tile_rows);
    key_tiles_ = core::ceil_div(keys, tile.BN);
    // Mean over the row tiles of the part of `keys` that they see: less than 1 where the last query
    // sees all keys, but the first ones much fewer.
    const bool is_causal = grid.order == schedule::TileOrder::kLongestFirst;
    const int32_t ramp = is_causal ? std::min(p.max_seqlen_q, keys) : 0;
    mean_tiles_ = key_tiles_ * (keys - 0.5 * ramp) / std::max(keys, 1);
    least_tiles_ = key_tiles_ * (keys - 1.0 * ramp) / std::max(keys, 1);
    is_unequal_ = tile.may_have_least_tiles && has_unequal_lengths(p);
    if (is_unequal_) mean_tiles_ = kMeanOfUnequal * key_tiles_;
    if (!grid.is_bisected() && is_even()) num_last_ = grid.num_tiles() % num_ctas;
    const int64_t key_bytes = (p.head_dim_qk + p.head_dim_vo) * size_bytes(p.k.dtype);
    const int64_t kv_heads = int64_t{p.batch} * p.num_kv_heads;
    finds_keys_in_l2_ =
        grid.num_tiles() <= kv_heads || kv_heads * keys * key_bytes <= kL2BytesOfShares;
  }

  // Splits of the row tiles that may be split, at most.
  [[nodiscard]] int32_t most() const {
    const int32_t most = std::min(kMostAutomaticSplits, key_tiles_ / kMinSplitTiles);
    const int32_t of_shared = std::min({kMostAutomaticSplits, key_tiles_ / kMinSharedTiles,
                                        num_ctas_ / std::max(grid_.num_tiles(), 1)});
    if (of_shared > most && is_shared(of_shared)) return of_shared;
    return is_unequal_ ? std::min(most, most_of_unequal()) : most;
  }
  // All row tiles have so many splits.
  [[nodiscard]] double time(int32_t splits) const {
    const double fixed = splits == 1 ? kTileCost : kTileCost + tile_.part_size * kPartCost;
    const double longest = core::ceil_div(key_tiles_, splits) + fixed;
    const double merge = splits == 1 ? 0 : merge_time(splits);
    if (is_unequal_) return time_of_unequal(splits, longest) + merge;
    const double rounds = std::ceil(tiles_ * splits / num_ctas_);
    if (is_even()) return rounds * longest + merge;
    double time = std::max(longest, tiles_ * (mean_tiles_ + splits * fixed) / num_ctas_);
    // Some CTA takes `rounds` splits, none shorter than those of the row tile with the fewest keys.
    // Not for more row tiles than CTAs: their time without splits, which this is compared with,
    // leaves the rounds out, too.
    if (tiles_ <= num_ctas_) time = std::max(time, rounds * (least_tiles_ / splits + fixed));
    return time + merge;
  }
  [[nodiscard]] int32_t fastest_of_all() const {
    int32_t best = 1;
    for (int32_t splits = 2; tiles_ > 0 && splits <= most(); ++splits) {
      if (time(splits) < least_gain(best, splits) * time(best)) best = splits;
    }
    return best;
  }

  // A row tile without splits.
  [[nodiscard]] double time_of_tile() const { return key_tiles_ + kTileCost; }
  // Of whole row tiles: where they are more than CTAs, some CTA takes several, and none is shorter
  // than the shortest.
  [[nodiscard]] double least_time_of_rounds() const {
    return std::ceil(tiles_ / num_ctas_) * (least_tiles_ + kTileCost);
  }
  // The row tiles after the last full wave, all of which see about as many keys: where lengths
  // differ, CTAs do not begin them at one time.
  [[nodiscard]] int32_t num_last() const { return num_last_; }
  [[nodiscard]] bool has_last_wave() const { return num_last_ > 0 && tiles_ > num_ctas_; }
  // Only these have so many splits.
  [[nodiscard]] double time_of_last(int32_t splits) const {
    const int32_t rounds = core::ceil_div(num_last_ * splits, num_ctas_);
    if (rounds > kMostLastRounds) return std::numeric_limits<double>::infinity();
    const double full_waves = std::floor(tiles_ / num_ctas_);
    return full_waves * time_of_tile() +
           rounds * (core::ceil_div(key_tiles_, splits) + kTileCost + tile_.part_size * kPartCost) +
           tile_.part_size * kMergeCost * splits;
  }

  // All CTAs have equal shares of the row tiles.
  [[nodiscard]] double time_of_shares() const {
    const double share = tiles_ / num_ctas_;  // in row tiles
    const int64_t most = std::max(grid_.num_tiles(), key_tiles_ + 1);
    if (grid_.is_bisected() || !is_even() || grid_.num_tiles() != tiles_ ||
        most * num_ctas_ > schedule::EqualShares::kMostProduct ||
        key_tiles_ * share < kMinShareTiles || !finds_keys_in_l2_) {
      return std::numeric_limits<double>::infinity();
    }
    const double parts = std::floor(1 / share) + 2;  // of a row tile, at most
    return key_tiles_ * share + kTileCost * (share + 1) + tile_.part_size * kPartCost * 2 +
           tile_.part_size * kMergeCost * parts;
  }

 private:
  // Of sequences of unequal lengths. Splits have as many KV tiles as those of the longest sequence,
  // so that a mean row tile has 1 + kMeanOfUnequal * (splits - 1) of them. Each further split costs
  // twice, because the first one of its row tile writes a partial result, too. CTAs begin splits at
  // different times: the last one ends half of the longest split after an even division of all
  // work.
  [[nodiscard]] double time_of_unequal(int32_t splits, double longest) const {
    const double further = kMeanOfUnequal * (splits - 1);
    const double of_split = kTileCost + tile_.part_size * kPartCost;
    const double work = tiles_ * (mean_tiles_ + kTileCost + 2 * further * of_split);
    return std::max(longest, work / num_ctas_ + longest / 2);
  }
  [[nodiscard]] int32_t most_of_unequal() const {
    return static_cast<int32_t>(kMostUnequalRounds / tile_.part_size * num_ctas_ /
                                std::max(grid_.num_tiles(), 1));
  }
  [[nodiscard]] bool is_even() const { return mean_tiles_ > 0.9 * key_tiles_; }

  // `splits` are taken for `best` where their time is less than this part of that of `best`.
  [[nodiscard]] double least_gain(int32_t best, int32_t splits) const {
    const auto is_one_each = [this](int32_t number) {
      return tiles_ * number * tile_.ctas_per_sm <= num_ctas_;
    };
    if (is_unequal_) return kLeastUnequalGain;
    if (!is_shared(best)) return kLeastGain;
    if (is_one_each(splits)) return kLeastSharedGain;
    return is_one_each(best) ? kLeastPairedGain : kLeastGain;
  }
  [[nodiscard]] double merge_time(int32_t splits) const {
    return is_shared(splits) ? tile_.part_size * kSharedCost + kSharedMergeCost * splits
                             : tile_.part_size * kMergeCost * splits;
  }
  [[nodiscard]] bool is_shared(int32_t splits) const {
    schedule::TileGrid grid = grid_;
    grid.num_splits = splits;
    return tile_.may_share && shares_merge(grid, num_ctas_);
  }

  double tiles_;
  int32_t num_ctas_;
  SplitTile tile_;
  schedule::TileGrid grid_;
  int32_t key_tiles_ = 0;
  double mean_tiles_ = 0, least_tiles_ = 0;  // of a row tile
  bool is_unequal_ = false;
  int32_t num_last_ = 0;
  // Equal shares: CTAs are at different keys of a KV head at one time, which L2 must hold unless
  // one row tile alone reads them.
  bool finds_keys_in_l2_ = false;
};

// Whether scores depend on nothing but the product, and masks are intervals.
bool has_interval_scores(const Problem& p) {
  const mask::ExpressionMask mask = mask::make_expression_mask(p.mask);
  // Plain kernels fold the K scale of an e4m3 cache only into the scale of the scores.
  const bool has_plain_scales = p.k.dtype == DType::kF8E4M3 || p.k_scales.values == nullptr;
  return mask.program == 0 && !mask.has_bias() && p.score_mod.alibi_slopes.empty() &&
         p.score_mod.functor == nullptr && has_plain_scales;
}

}  // namespace

ScoreClass score_class(const Problem& p) {
  const bool is_plain = has_interval_scores(p) && p.score_mod.softcap == 0;
  return is_plain ? ScoreClass::kPlain : ScoreClass::kGeneral;
}

bool is_capped(const Problem& p) {
  return has_interval_scores(p) && p.score_mod.softcap != 0 && p.softmax_scale != 0 &&
         size_bytes(p.k.dtype) == 2 && p.k.dtype == p.q.dtype;
}

int64_t total_rows(const Problem& p) {
  return p.is_ragged ? p.total_q : int64_t{p.batch} * p.max_seqlen_q;
}

schedule::TileGrid tile_grid(const Problem& p, int32_t heads, int32_t tokens, int64_t l2_bytes) {
  schedule::TileGrid grid;
  grid.batch = p.batch;
  grid.num_heads = p.num_q_heads / heads;
  grid.tile_rows = tokens;
  grid.rows = static_cast<int32_t>(p.is_ragged ? p.total_q : p.max_seqlen_q);
  grid.cu_rows = p.is_ragged ? p.cu_seqlens_q.data() : nullptr;
  const int64_t equal_tiles = int64_t{p.batch} * core::ceil_div(p.max_seqlen_q, tokens);
  const bool is_equal = !p.is_ragged || equal_tiles <= p.total_q / tokens + p.batch;
  if (p.is_ragged && is_equal) grid.most_rows = p.max_seqlen_q;
  const mask::ExpressionMask mask = mask::make_expression_mask(p.mask);
  if (mask.interval.rule.right != mask::IntervalRule::kOpen || p.functor.is_causal()) {
    grid.order = schedule::TileOrder::kLongestFirst;
    // A section has as many heads as have their K and V in L2 together; the query heads of a group
    // share them.
    const int64_t head_bytes = int64_t{p.max_seqlen_kv_bound} * (p.head_dim_qk + p.head_dim_vo) *
                               static_cast<int64_t>(size_bytes(p.k.dtype)) * heads / p.group;
    const int64_t heads_ordered = int64_t{grid.num_heads} * (is_equal ? p.batch : 1);
    const int64_t most = std::clamp<int64_t>(l2_bytes / std::max<int64_t>(head_bytes, 1), 1,
                                             std::max<int64_t>(heads_ordered, 1));
    // Sections of equal width: a narrow last one would end with few tiles in flight.
    const int64_t sections = core::ceil_div(heads_ordered, most);
    grid.section =
        static_cast<int32_t>(core::ceil_div(heads_ordered, std::max<int64_t>(sections, 1)));
  }
  return grid;
}

core::Fit fit_of(const Problem& p, DType dtype, int depth_qk, int depth_vo, bool has_fp8_cache,
                 std::string* reason) {
  using core::Fit;
  if (p.q.dtype != dtype) {
    return core::unfit(Fit::kTypes, reason, [&] {
      return std::string("queries are ") + name(p.q.dtype) + ", these are for " + name(dtype);
    });
  }
  if (p.k.dtype != dtype && !(has_fp8_cache && p.k.dtype == DType::kF8E4M3)) {
    return core::unfit(Fit::kTypes, reason, [&] {
      return std::string("the cache is ") + name(p.k.dtype) +
             (has_fp8_cache ? ": the queries' type or f8e4m3 is served"
                            : ", not of the queries' type");
    });
  }
  return fit_of_features(p, depth_qk, depth_vo, reason);
}

core::Fit fit_of_features(const Problem& p, int depth_qk, int depth_vo, std::string* reason) {
  using core::Fit;
  if (p.head_dim_qk > depth_qk || p.head_dim_vo > depth_vo) {
    return core::unfit(Fit::kShapes, reason, [&] {
      return "head dims " + std::to_string(p.head_dim_qk) + " x " + std::to_string(p.head_dim_vo) +
             " exceed " + std::to_string(depth_qk) + " x " + std::to_string(depth_vo);
    });
  }
  if (p.score_mod.functor != nullptr) {
    return core::unfit(Fit::kFeatures, reason,
                       [] { return "a score functor runs on the CPU only"; });
  }
  std::string mask = mask::unsupported_mask_reason(p.mask);
  if (mask.empty()) return Fit::kServes;
  return core::unfit(Fit::kFeatures, reason, [&] { return std::move(mask); });
}

std::string unsupported_functor_reason(const Problem& p, bool needs_aligned_kv) {
  if (score_class(p) != ScoreClass::kPlain) {
    return "kernels with a functor serve masks that are intervals, no soft cap, no ALiBi and no K "
           "scale per head of a 16-bit cache";
  }
  if (needs_aligned_kv && (p.k.dtype != p.q.dtype || !has_aligned_kv(p))) {
    return "kernels of this family with a functor load K and V of the queries' type, with rows "
           "aligned to 16 bytes";
  }
  return {};
}

bool has_aligned_kv(const Problem& p) {
  const auto is_aligned = [](const core::KVView& view) {
    const auto is_multiple = [](int64_t stride) { return stride % 8 == 0; };
    return reinterpret_cast<uintptr_t>(view.data) % 16 == 0 && is_multiple(view.outer_stride) &&
           is_multiple(view.row_stride) && is_multiple(view.head_stride);
  };
  return is_aligned(p.k) && is_aligned(p.v);
}

bool has_even_pages(const Problem& p, int32_t least) {
  return p.page_size >= least && std::has_single_bit(static_cast<uint32_t>(p.page_size));
}

int32_t max_visible_keys(const Problem& p, int32_t tile_tokens) {
  const mask::IntervalRule rule = mask::make_expression_mask(p.mask).interval.rule;
  int64_t keys = p.max_seqlen_kv_bound;
  if (rule.left != mask::IntervalRule::kOpen && rule.right != mask::IntervalRule::kOpen) {
    keys = std::min(keys, int64_t{rule.left} + rule.right + tile_tokens);
  }
  if (rule.chunk > 0) {
    const int64_t chunks = core::ceil_div(tile_tokens - 1, rule.chunk) + 1;
    keys = std::min(keys, chunks * rule.chunk);
  }
  return static_cast<int32_t>(keys);
}

int32_t num_kv_splits(const Problem& p, const schedule::TileGrid& grid, int32_t num_sms,
                      int32_t BN) {
  return SplitModel(p, grid, num_sms, {.BN = BN}).fastest_of_all();
}

bool shares_merge(const schedule::TileGrid& grid, int32_t num_ctas) {
  return grid.num_splits > kMostSplitsOfOne && grid.num_whole == 0 && grid.size() <= num_ctas;
}

KVSplits kv_splits(const Problem& p, const schedule::TileGrid& grid, int32_t num_ctas,
                   const SplitTile& tile) {
  const SplitModel model(p, grid, num_ctas, tile);
  KVSplits best{.num_splits = model.fastest_of_all()};
  double least = model.time(best.num_splits);
  if (model.has_last_wave()) {
    for (int32_t splits = 2; splits <= model.most(); ++splits) {
      const double time = model.time_of_last(splits);
      if (time >= kLeastLastGain * least) continue;
      best = {splits, grid.num_tiles() - model.num_last()};
      least = time;
    }
  }
  best.waves = least / model.time_of_tile();
  best.time = best.rounds_time = least;
  if (best.num_splits == 1) best.rounds_time = std::max(least, model.least_time_of_rounds());
  return best;
}

double time_of_equal_shares(const Problem& p, const schedule::TileGrid& grid, int32_t num_ctas,
                            const SplitTile& tile) {
  return SplitModel(p, grid, num_ctas, tile).time_of_shares();
}

int64_t max_stream_k_ctas(const Problem& p, int32_t tokens, int32_t head_tiles, int32_t BN) {
  const int64_t rows = total_rows(p);
  const int64_t token_tiles = std::min<int64_t>(rows, rows / tokens + p.batch);
  const int64_t key_tiles = std::max(1, core::ceil_div(p.max_seqlen_kv_bound, BN) + 1);
  return token_tiles * p.num_kv_heads * head_tiles * key_tiles;
}

bool has_unequal_lengths(const Problem& p) {
  constexpr double kFilled = 0.9;  // rows, of those that sequences of the longest's length have
  const bool has_prompts = p.max_seqlen_kv_bound < 2 * int64_t{p.max_seqlen_q};
  const double of_equal = static_cast<double>(p.batch) * p.max_seqlen_q;
  return p.is_ragged && p.batch > 1 && !has_prompts &&
         static_cast<double>(p.total_q) < kFilled * of_equal;
}

bool may_have_short_rows(const Problem& p, int32_t short_rows, bool is_batch_invariant) {
  if (short_rows < 1) return false;
  if (!p.is_ragged) {
    if (p.max_seqlen_q <= short_rows) return true;
    return is_batch_invariant && !p.seqlens_q_valid.empty();
  }
  if (!p.has_host_lengths) {
    // Rows at the end may belong to no sequence, as in a graph that is replayed with fewer, or be
    // padding. The kernel of a sequence must not depend on them in an invariant batch, of one
    // sequence either.
    if (is_batch_invariant) return true;
    // Otherwise tiles of tokens serve it then; so many rows leave none for a short sequence.
    const int64_t most_others = int64_t{p.batch - 1} * p.max_seqlen_q;
    return p.batch > 1 && p.total_q <= most_others + short_rows;
  }
  for (int32_t b = 0; b < p.batch; ++b) {
    const int32_t rows = is_batch_invariant ? p.seqlen_q(b) : p.num_rows(b);
    if (p.num_rows(b) > 0 && rows <= short_rows) return true;
  }
  return false;
}

void set_call(const Problem& p, AttentionArguments& a) {
  a.sequences = sequences_of(p);
  a.num_kv_heads = p.num_kv_heads;
  a.group = p.group;
  a.by_group = arch::Divisor(p.group);
  a.dim_qk = p.head_dim_qk;
  a.dim_vo = p.head_dim_vo;
  a.q_data = p.q.data;
  a.out_data = p.out.data;
  a.out_dtype = p.out.dtype;
  a.q_dtype = p.q.dtype;
  a.kv_dtype = p.k.dtype;
  a.out_factor = 1.0F / p.out_scale;
  a.lse = static_cast<float*>(p.lse.data);
  a.lse_factor = p.lse_factor;
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
  a.q_scales = scale_factors(p.q_scales);
  a.q_scale_group = p.q_scales.group;
  a.k_scales = scale_factors(p.k_scales);
  a.v_scales = scale_factors(p.v_scales);
}

// --- tensor maps ---------------------------------------------------------------------------------

arch::TensorMapSpec kv_map(const Problem& p, const core::KVView& view, int32_t dim, int32_t BN,
                           arch::Swizzle swizzle) {
  arch::TensorMapSpec spec = map_of(view.dtype, view.data, 3, swizzle);
  spec.dims[0] = static_cast<uint64_t>(dim);
  // Rows of 64 bytes: the other half of a line of 128 belongs to another head.
  if (stride_bytes(view.dtype, dim) <= 64) spec.l2_promotion = arch::L2Promotion::k64B;
  spec.dims[1] = static_cast<uint64_t>(p.num_kv_heads);
  spec.dims[2] = static_cast<uint64_t>(num_rows(p, view));
  spec.box[2] = static_cast<uint32_t>(box_rows(p, BN));
  // The stride of a dimension of extent 1 is never used, but must be valid.
  spec.strides_bytes[0] =
      stride_bytes(view.dtype, p.num_kv_heads > 1 ? view.head_stride : view.row_stride);
  spec.strides_bytes[1] = stride_bytes(view.dtype, view.row_stride);
  return spec;
}

arch::TensorMapSpec rows_map(const Problem& p, const core::RowView& view, int32_t dim,
                             int32_t heads, int32_t tokens, arch::Swizzle swizzle) {
  arch::TensorMapSpec spec = map_of(view.dtype, view.data, 4, swizzle);
  spec.dims[0] = static_cast<uint64_t>(dim);
  spec.dims[1] = static_cast<uint64_t>(p.num_q_heads);
  spec.dims[2] = static_cast<uint64_t>(p.is_ragged ? p.total_q : p.max_seqlen_q);
  spec.dims[3] = static_cast<uint64_t>(p.is_ragged ? 1 : p.batch);
  spec.box[1] = static_cast<uint32_t>(heads);
  spec.box[2] = static_cast<uint32_t>(tokens);
  const int64_t sequence = p.is_ragged || p.batch == 1 ? view.row_stride : view.sequence_stride;
  spec.strides_bytes[0] =
      stride_bytes(view.dtype, p.num_q_heads > 1 ? view.head_stride : view.row_stride);
  spec.strides_bytes[1] = stride_bytes(view.dtype, view.row_stride);
  spec.strides_bytes[2] = stride_bytes(view.dtype, sequence);
  return spec;
}

bool is_possible(const arch::TensorMapSpec& spec) {
  for (int32_t d = 0; d < spec.rank; ++d) {
    if (spec.dims[d] > INT32_MAX) return false;
    if (d > 0 && spec.strides_bytes[d - 1] == 0) return false;
  }
  return !arch::validate(spec).exists();
}

bool stores_by_tma(const Problem& p, const arch::TensorMapSpec& out) {
  const DType own = p.q.dtype == DType::kF8E4M3 ? DType::kBF16 : p.q.dtype;
  return p.out.dtype == own && is_possible(out);
}

bool is_kv_by_tma(const Problem& p, int32_t BN, arch::Swizzle swizzle) {
  if (box_rows(p, BN) == 0) return false;
  // Left padding: a tile may start at any row of a page.
  if (p.kv_kind == core::KVKind::kPaged && !p.leftpad_kv.empty()) return false;
  // A row number serves both K and V: the load roles look it up once.
  if (outer_rows(p, p.k) == 0 || outer_rows(p, p.k) != outer_rows(p, p.v)) return false;
  return is_possible(kv_map(p, p.k, p.head_dim_qk, BN, swizzle)) &&
         is_possible(kv_map(p, p.v, p.head_dim_vo, BN, swizzle));
}

arch::Eviction kv_eviction(const Problem& p, const PackedRows& packed, arch::Eviction read_once,
                           int32_t max_rows) {
  const bool is_read_once =
      packed.head_tiles == 1 && std::min(p.max_seqlen_q, max_rows) <= packed.tokens;
  return is_read_once ? read_once : arch::Eviction::kLast;
}

// --- the workspace of split rows -----------------------------------------------------------------

void SplitWorkspace::hold(int64_t blocks, int32_t block_rows, int32_t depth) {
  const auto at_least = [](int64_t& size, int64_t bytes) {
    size = std::max(size, core::align_up(bytes, kAlignment));
  };
  at_least(counter_bytes, blocks * int64_t{sizeof(uint32_t)});
  at_least(stats_bytes, blocks * block_rows * 4 * int64_t{sizeof(float)});
  at_least(partial_bytes, blocks * block_rows * depth * int64_t{sizeof(float)});
}

void SplitWorkspace::finish() { counter_bytes += kAlignment; }  // grid_counter

void SplitWorkspace::set(std::span<std::byte> workspace, AttentionArguments& a) const {
  if (workspace.empty()) return;
  std::byte* at = workspace.data();
  a.grid_counter = reinterpret_cast<uint32_t*>(at);
  a.counters = reinterpret_cast<uint32_t*>(at + kAlignment);
  at += counter_bytes;
  a.partial_stats = reinterpret_cast<float*>(at);
  at += stats_bytes;
  a.partial_out = reinterpret_cast<float*>(at);
}

}  // namespace pagoda::kernels
