// From a call to the parameters that all attention kernels share: arguments, tensor maps, the
// workspace of split rows. Host code that needs no GPU. It reads lengths only where they are in
// host memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "arch/layout/swizzle.hpp"
#include "arch/layout/tensor_map.hpp"
#include "core/kernel.hpp"
#include "core/problem.hpp"
#include "kernels/common/attention_params.hpp"
#include "kernels/common/kinds.hpp"
#include "kernels/common/work_tile.hpp"

namespace pagoda::kernels {

// kPlain or kGeneral, which every family has.
[[nodiscard]] ScoreClass score_class(const core::Problem& problem);
// Whether general scores are those of ScoreClass::kCapped. 16-bit caches, of the queries' type.
[[nodiscard]] bool is_capped(const core::Problem& problem);

// Query rows of the batch in memory, padding rows included.
[[nodiscard]] int64_t total_rows(const core::Problem& problem);

// Row tiles of `tokens` tokens of `heads` query heads. Under a mask with an upper bound (causal)
// the tiles with the most keys come first, in sections of as many heads as have their K and V in
// `l2_bytes` together.
[[nodiscard]] schedule::TileGrid tile_grid(const core::Problem& problem, int32_t heads,
                                           int32_t tokens, int64_t l2_bytes);

// --- rules that the launch plans share -----------------------------------------------------------

// Sequences of at most this many query rows are packed and share the KV tiles of the whole batch
// (stream-K); longer ones are tiles of tokens. Measured on an H200 (mha_sm90/notes); the same
// value is unmeasured on Blackwell.
inline constexpr int32_t kShortRows = 64;

// core::Kernel::fit of a kernel of this element type and of these padded head dims, as far as
// types, head dims, score functors and masks go.
[[nodiscard]] core::Fit fit_of(const core::Problem& problem, DType dtype, int depth_qk,
                               int depth_vo, bool has_fp8_cache, std::string* reason);

// The same for all element types.
[[nodiscard]] core::Fit fit_of_features(const core::Problem& problem, int depth_qk, int depth_vo,
                                        std::string* reason);

// Whether every row of a 16-bit K and V starts at a multiple of 16 bytes.
[[nodiscard]] bool has_aligned_kv(const core::Problem& problem);

// Whether the page size is a power of two of `least` keys or more.
[[nodiscard]] bool has_even_pages(const core::Problem& problem, int32_t least);

// Upper bound of the keys that `tile_tokens` consecutive queries see together. A window or chunked
// mask bounds it in a long cache.
[[nodiscard]] int32_t max_visible_keys(const core::Problem& problem, int32_t tile_tokens);

// The number of KV splits with which the row tiles of `grid` take the least time by a model of what
// `num_sms` CTAs of BN keys a KV tile do: few row tiles leave multiprocessors idle, many splits
// cost partial results and a merge. A split has at least four KV tiles.
[[nodiscard]] int32_t num_kv_splits(const core::Problem& problem, const schedule::TileGrid& grid,
                                    int32_t num_sms, int32_t BN);

// KV splits of a grid's row tiles, as TileGrid has them, and the time of all row tiles by the model
// of num_kv_splits, in that of one which is not split.
struct KVSplits {
  int32_t num_splits = 1, num_whole = 0;
  double waves = 1;  // in the time of a row tile that sees all keys
  double time = 0;   // in that of a KV tile
  // `time`, or longer: each CTA takes whole row tiles, while `time` divides those that see unequal
  // numbers of keys evenly.
  double rounds_time = 0;
};
// Whether all CTAs of a row tile can merge its splits (shared_merge.hpp), not the last alone: many
// splits, of which each has a CTA of its own.
[[nodiscard]] bool shares_merge(const schedule::TileGrid& grid, int32_t num_ctas);
// What the model asks of a kernel's tile.
struct SplitTile {
  int32_t BN = 0;
  // Of a partial result; 2 for rows of 256 columns whose KV tiles take as long as those of 128.
  double part_size = 1;
  // The kernel shares merges where shares_merge(); a split then has at least two KV tiles.
  bool may_share = false;
  int32_t ctas_per_sm = 1;
  // The kernel has TileGrid::least_split_tiles.
  bool may_have_least_tiles = false;
};
// num_kv_splits where also the row tiles of the last wave alone may be split: where 133 row tiles
// see as many keys, 132 CTAs compute one each, and then the last one together.
[[nodiscard]] KVSplits kv_splits(const core::Problem& problem, const schedule::TileGrid& grid,
                                 int32_t num_ctas, const SplitTile& tile);

// The time of all row tiles, in that of a KV tile, if `num_ctas` CTAs have equal shares of them
// (equal_shares.hpp); infinite where they can't. For grids whose row tiles, whole or in splits,
// leave many CTAs idle: of 48 row tiles, 132 CTAs would take two splits each, and 36 nothing.
[[nodiscard]] double time_of_equal_shares(const core::Problem& problem,
                                          const schedule::TileGrid& grid, int32_t num_ctas,
                                          const SplitTile& tile);

// An upper bound of the KV tiles of all packed rows, hence of the CTAs of a stream-K partition that
// get work. `tokens` and `head_tiles` are those of PackedRows.
[[nodiscard]] int64_t max_stream_k_ctas(const core::Problem& problem, int32_t tokens,
                                        int32_t head_tiles, int32_t BN);

// Whether a plan should expect a sequence of 1 .. `short_rows` query rows, as
// AttentionArguments::launch_rows counts them. Exact where lengths are in host memory.
[[nodiscard]] bool may_have_short_rows(const core::Problem& problem, int32_t short_rows,
                                       bool is_batch_invariant);

// Whether sequences differ in length, as far as query rows tell: a batch over longer caches whose
// sequences have fewer rows than the longest. Their numbers of keys are taken to differ, too.
[[nodiscard]] bool has_unequal_lengths(const core::Problem& problem);

// The part of the bound of their number that the keys of unequal lengths are taken to be. Measured,
// mha_sm90/notes/split_rows.md.
inline constexpr double kMeanOfUnequal = 0.4;

// Sets what follows from the call alone: neither schedule nor workspace.
void set_call(const core::Problem& problem, AttentionArguments& arguments);

// The L2 policy of K and V in a launch whose work tiles have `packed` rows of sequences of at most
// `max_rows` rows: `read_once` where one work tile reads each key (decode). Evict last where
// several do: the rows of a prefix that a batch shares, head tiles of a wide group.
[[nodiscard]] arch::Eviction kv_eviction(const core::Problem& problem, const PackedRows& packed,
                                         arch::Eviction read_once, int32_t max_rows);

// --- tensor maps: boxes as wide as the swizzle -------------------------------------------------

// K or V in tiles of BN keys: [rows, heads, dim].
[[nodiscard]] arch::TensorMapSpec kv_map(const core::Problem& problem, const core::KVView& view,
                                         int32_t dim, int32_t BN, arch::Swizzle swizzle);
// Q or O in boxes of `tokens` rows of `heads` heads: [batch, rows, heads, dim].
[[nodiscard]] arch::TensorMapSpec rows_map(const core::Problem& problem, const core::RowView& view,
                                           int32_t dim, int32_t heads, int32_t tokens,
                                           arch::Swizzle swizzle);
// Whether the map obeys TMA's rules, with coordinates of 31 bits.
[[nodiscard]] bool is_possible(const arch::TensorMapSpec& spec);
// Whether TMA can store O by `out`, its map: only O of the kernels' own type, Q's (bf16 where Q is
// fp8). Others are stored from registers.
[[nodiscard]] bool stores_by_tma(const core::Problem& p, const arch::TensorMapSpec& out);
// Whether TMA can load K and V, of any type, in tiles of BN keys.
[[nodiscard]] bool is_kv_by_tma(const core::Problem& problem, int32_t BN, arch::Swizzle swizzle);

// --- the workspace of split rows (split_rows.hpp) ----------------------------------------------

struct SplitWorkspace {
  // Offsets follow this order. The counter of GridWork and those of split rows are zero between
  // launches:
  //
  //   0 .. 127                     grid_counter
  //   128 .. counter_bytes         counters       [blocks]
  //   then stats_bytes             partial_stats  [blocks][block_rows][4] fp32
  //   then partial_bytes           partial_out    [blocks][block_rows][depth] fp32
  int64_t counter_bytes = 0, stats_bytes = 0, partial_bytes = 0;

  // Makes room for `blocks` blocks of partial results of one launch. Launches of a plan run one
  // after the other and share the workspace.
  void hold(int64_t blocks, int32_t block_rows, int32_t depth);
  void finish();  // after the last hold()
  [[nodiscard]] int64_t bytes() const { return counter_bytes + stats_bytes + partial_bytes; }
  void set(std::span<std::byte> workspace, AttentionArguments& arguments) const;
};

}  // namespace pagoda::kernels
