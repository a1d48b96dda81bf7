// TileConfig: everything that an instance of the Hopper kernel is compiled for besides its element
// type: tile sizes, stages, registers, and the classes of rows, loads and scores.
#pragma once

#include "arch/layout/swizzle.hpp"
#include "arch/layout/types.hpp"
#include "core/target.hpp"
#include "kernels/common/kinds.hpp"
#include "pipeline/kv_tiling.hpp"

namespace pagoda::mha_sm90 {

inline constexpr int kWarpgroup = 128;  // threads
inline constexpr int kRows = 64;        // query rows of a consumer warpgroup: M of wgmma
inline constexpr int kWarpRows = 16;    // query rows of a warp: M of mma.sync

// What the query rows of a work tile are.
enum class RowKind : uint8_t {
  // Prefill: num_consumers * 64 tokens of one query head. TMA loads Q. CTAs draw row tiles
  // (GridWork).
  kTokens,
  // The same with three consumers where kTokens has two (tall_tile, e4m3_tile). TileConfig::rows is
  // kTokens.
  kTallTokens,
  // The same with a consumer less, in two CTAs a multiprocessor (short_tile). TileConfig::rows is
  // kTokens.
  kShortTokens,
  // The same with one consumer, for few row tiles (single_tile). TileConfig::rows is kTokens.
  kSingleTokens,
  // Those of kTokens with several query heads of a group, of e4m3 queries (e4m3_tile): kernels of
  // one head are 2 to 3 % faster. TileConfig::rows is kTokens.
  kGroupTokens,
  // Those of kTokens, and packed rows beside them, which some CTAs decode (mixed_tile). A kernel of
  // its own: its scheduler makes kernels slower that do not execute it (notes/start_of_a_call.md).
  // TileConfig::rows is kTokens.
  kMixedTokens,
  // Those of kTokens, of which every CTA has an equal share (stream-K over row tiles): where row
  // tiles, whole or in splits, leave many multiprocessors idle. TileConfig::rows is kTokens.
  kStreamKTokens,
  // Decode: (token, query head of the KV head's group) pairs. Threads load Q. Stream-K
  // (StreamKWork).
  kPacked,
};

// kTma: load.hpp, consumer.hpp, and for 8-bit elements transpose_v.hpp. kGather: gather.hpp,
// consumer.hpp; packed rows of 16-bit elements only. kTmaFp8: load.hpp, warp_consumer.hpp; up to 16
// packed rows of 16-bit queries. kTmaWiden: load.hpp, widen.hpp, consumer.hpp; tokens of 16-bit
// queries.
using kernels::LoadKind;
using kernels::ScoreClass;

struct TileConfig {
  int element_bytes = 2;  // of Q and P, and but for fp8 caches of K and V; 1: e4m3
  int depth_qk = 128;     // padded head dims: multiples of the swizzle's width
  int depth_vo = 128;
  int BN = 128;            // keys of a KV tile
  int block_rows = kRows;  // rows of a consumer in a work tile
  int num_consumers = 2;   // warpgroups
  int k_stages = 2;
  int v_stages = 2;       // transposes_v: of V as TMA loads it, and as many of V transposed
  int loaded_stages = 1;  // widens: of K, and of V, as TMA loads them
  int q_stages = 1;       // of each consumer; 2: double-buffered Q
  arch::Swizzle swizzle = arch::Swizzle::k128B;
  RowKind rows = RowKind::kTokens;
  LoadKind load = LoadKind::kTma;
  ScoreClass scores = ScoreClass::kPlain;
  // kGather: buffers for tiles of an fp8 cache that are in flight, before their conversion into the
  // stages; half of them for K, half for V.
  int raw_tiles = 0;
  // Latent attention: V is the first depth_vo columns of K, and a stage of K holds both. Two
  // warpgroups have the rows of a consumer, each half of O's columns: the first makes P, and both
  // multiply it with their columns of V (latent_scores.hpp, latent_values.hpp).
  bool is_latent = false;
  // kTokens: whether a row tile may hold several query heads, where the scores allow it.
  bool packs_heads = true;
  bool is_ping_pong = true;  // consumers issue their products one after the other, in turn
  // Whether the softmax of a KV tile runs under P V of the tile before, of the same consumer. Else
  // only the products of other consumers run under it: P and the next S take the same registers.
  bool overlaps_pv = true;
  int ctas_per_sm = 1;
  // kTokens: CTAs have equal shares of all row tiles (schedule::ShareScheduler) instead of drawing
  // them.
  bool has_equal_shares = false;
  // kTokens: some CTAs decode packed rows before they draw row tiles (kernels::MixedShares).
  bool decodes = false;
  // kTokens: the next work tile is drawn when load K has copies of so many KV tiles left, or has
  // begun a work tile of fewer.
  int draw_ahead = 3;
  int producer_registers = 56;
  int consumer_registers = 224;
  int converter_registers = 40;

  // wgmma reads 8-bit operands K-major only: a warpgroup transposes V, whose K are the keys.
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr bool transposes_v() const {
    return element_bytes == 1;
  }
  // A warpgroup widens the e4m3 elements of K and V to f16.
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr bool widens() const {
    return load == LoadKind::kTmaWiden;
  }
  // Warpgroups that make the tiles that consumers multiply from those that TMA loads.
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int num_converters() const {
    return transposes_v() || widens() ? 1 : 0;
  }
  // Of K and V as TMA loads them: padded head dim and swizzle. widens: whole panels.
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int loaded_depth(int depth) const {
    if (!widens()) return depth;
    return depth <= 64 ? 64 : (depth + 127) / 128 * 128;
  }
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr arch::Swizzle loaded_swizzle() const {
    if (!widens()) return swizzle;
    return depth_qk <= 64 ? arch::Swizzle::k64B : arch::Swizzle::k128B;
  }
  // Of transposed V: a line holds all keys of a tile.
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr arch::Swizzle transposed_swizzle() const {
    return BN == 128 ? arch::Swizzle::k128B
                     : (BN == 64 ? arch::Swizzle::k64B : arch::Swizzle::k32B);
  }
  // O is staged for TMA in the stage of its Q. That of 8-bit queries is too small for O in bf16,
  // which has memory of its own.
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr bool stages_o_in_q() const {
    return element_bytes == 2;
  }
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr arch::Swizzle out_swizzle() const {
    return stages_o_in_q() ? swizzle : arch::Swizzle::k128B;
  }

  // Warpgroups that share the rows of a consumer, and the columns of O of each.
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int column_parts() const { return is_latent ? 2 : 1; }
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int out_columns() const {
    return depth_vo / column_parts();
  }
  // Warpgroups that multiply.
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int num_multiplying() const {
    return num_consumers * column_parts();
  }
  // Parts of a stage of K, which TMA fills and consumers release one by one.
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int k_parts() const {
    return is_latent ? depth_qk / panel_columns() : 1;
  }
  // Columns of 16-bit elements as wide as the swizzle.
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int panel_columns() const {
    return static_cast<int>(swizzle_width_bytes(swizzle)) / 2;
  }
  // Latent rows: of P in shared memory, a row of which holds the keys of a tile.
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr arch::Swizzle p_swizzle() const {
    return BN == 64 ? arch::Swizzle::k128B : arch::Swizzle::k64B;
  }

  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int num_warpgroups() const {
    return num_multiplying() + num_converters() + 1;
  }
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int threads() const {
    return num_warpgroups() * kWarpgroup;
  }
  // With up to 256 threads an SM every thread has 255 registers; with more the roles share the
  // register file by setmaxnreg.
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr bool uses_setmaxnreg() const {
    return threads() * ctas_per_sm > 256;
  }
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int tile_rows() const { return num_consumers * kRows; }
  // Whether splits are merged in accumulators; otherwise row by row. General scores of wide heads
  // leave no registers for it.
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr bool merges_in_registers() const {
    return is_latent ||
           (rows == RowKind::kTokens && (scores != ScoreClass::kGeneral || depth_vo <= 128));
  }
  // Whether all CTAs of a row tile may merge its splits together (kernels/common/shared_merge.hpp):
  // fewer registers would spill, CTAs with a share of two row tiles would wait for the other, and
  // those that decode have other work tiles.
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr bool may_share_merge() const {
    return merges_in_registers() && !has_equal_shares && !decodes &&
           (!uses_setmaxnreg() || consumer_registers > 160);
  }
  // Whether a row tile may hold several query heads of a group (kernels::RowBlock). Those of e4m3
  // then have one scale of Q (packing_of).
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr bool may_pack_heads() const {
    return is_latent || (rows == RowKind::kTokens && scores != ScoreClass::kGeneral && packs_heads);
  }
  // Whether a block of several heads may have fewer than 64 rows: their number takes a register of
  // MultiplyAgain, which three consumers of 128 columns do not have.
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr bool may_have_empty_rows() const {
    return num_consumers < 3 || depth_vo <= 64;
  }
  // Whether a plan may say how many KV tiles a split has at least: a register of the scheduler lane
  // that three consumers of more than 64 columns do not leave.
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr bool may_have_least_tiles() const {
    return num_consumers < 3 || depth_vo <= 64;
  }
  // Whether a consumer multiplies warp by warp, each warp all rows and a quarter of the keys.
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr bool uses_mma_sync() const {
    return load == LoadKind::kTmaFp8;
  }
  // Whether those who read V as TMA loads it zero the rows past the sequence's end in registers.
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr bool zeroes_v_in_registers() const {
    return uses_mma_sync() || transposes_v() || widens();
  }
  // Whether rows of K past the sequence's end are read as numbers before a mask replaces their
  // scores: those of missing pages are zeros then.
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr bool reads_whole_k_tiles() const {
    return uses_mma_sync() || widens();
  }
  // uses_mma_sync: whether Q stays in registers. With wide heads O needs them.
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr bool keeps_q_in_registers() const {
    return depth_qk <= 128;
  }
  // Required by kernels/common/work_tile.hpp.
  static constexpr bool fuses_heads = false;
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr bool has_even_tiles() const {
    return load == LoadKind::kGather;
  }
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int num_blocks() const { return num_consumers; }
  // Rows of a copy from pages: 32 registers of a producer do not hold the rows of 16 copies.
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int fewest_copy_rows() const {
    return producer_registers <= 32 && BN > 64 ? 16 : 8;
  }
  // Of K and V as TMA loads them.
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr pipeline::KVTiling k_tiling() const {
    pipeline::KVTiling tiling =
        loaded_tiling(loaded_depth(depth_qk), widens() ? loaded_stages : k_stages);
    tiling.num_qk_stages = k_parts();
    tiling.BK0 /= k_parts();
    return tiling;
  }
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr pipeline::KVTiling v_tiling() const {
    return loaded_tiling(loaded_depth(depth_vo), widens() ? loaded_stages : v_stages);
  }
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr pipeline::KVTiling loaded_tiling(int depth,
                                                                              int stages) const {
    return {.BN = BN,
            .BK0 = depth,
            .BK1 = BN,
            .padded_depth = depth,
            .num_kv_stages = stages,
            .swizzle = loaded_swizzle()};
  }
};

}  // namespace pagoda::mha_sm90
