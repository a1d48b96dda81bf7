// The compile-time configuration of a Blackwell instance: tile, stages, registers, tensor memory
// map, score class. The formulas are those that Modular documents for its FA4 configuration
// (modular/modular, FA4Config); comments name the exceptions.
#pragma once

#include "arch/layout/swizzle.hpp"
#include "arch/layout/types.hpp"
#include "core/int_math.hpp"
#include "core/target.hpp"
#include "kernels/common/kinds.hpp"
#include "kernels/common/sm100/limits.hpp"
#include "pipeline/kv_tiling.hpp"

namespace pagoda::mha_sm100 {

using kernels::LoadKind;
using kernels::ScoreClass;
using kernels::sm100::kOtherBytes;
using kernels::sm100::kSharedBytes;

inline constexpr int kWarpgroup = 128;  // threads
inline constexpr int kRows = 128;       // query rows of a half: one per lane of tensor memory
inline constexpr int kHalves = 2;       // Q0 and Q1 of a CTA, one softmax warpgroup each
inline constexpr int kThreads = 4 * kWarpgroup;
inline constexpr int kTmemColumns = 512;  // all: two S and two O of depth 128 take every column

// First columns of S0, S1, O0, O1. P overwrites S, two or four elements to a column.
struct TmemMap {
  int s[kHalves], o[kHalves];
  int end;
};

struct TileConfig {
  // CTAs of an MMA (cta_group). In a pair each CTA has its own query rows of both halves, and loads
  // half of every K and V tile: half of the keys of K, half of the columns of V.
  int ctas = 1;
  int element_bytes = 2;  // of Q, K, V and P
  int depth = 128;        // padded head dim, of QK and of VO
  int BN = 128;           // keys of a tile
  int slots = 5;          // K or V tiles in shared memory; in a pair, half tiles
  arch::Swizzle swizzle = arch::Swizzle::k128B;
  ScoreClass scores = ScoreClass::kPlain;
  // Per thread; 2 * softmax + correction + other = 512 fills the register file.
  int softmax_registers = 176;
  int correction_registers = 88;
  int other_registers = 72;

  // Parameters of the schedule (kernels/common/work.hpp): a work tile has two blocks of rows a CTA,
  // and the query heads of one KV head are packed into the rows.
  static constexpr LoadKind load = LoadKind::kTma;
  static constexpr int block_rows = kRows;
  static constexpr bool fuses_heads = true;
  [[nodiscard]] static PAGODA_HOST_DEVICE constexpr bool has_even_tiles() { return false; }
  static PAGODA_HOST_DEVICE constexpr int num_blocks() { return kHalves; }
  static PAGODA_HOST_DEVICE constexpr int threads() { return kThreads; }

  // K extent of one tcgen05.mma: 32 bytes, of the head dim in Q K', of the keys in P V.
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int mma_k() const { return 32 / element_bytes; }
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int swizzle_elements() const {
    return static_cast<int>(swizzle_width_bytes(swizzle)) / element_bytes;
  }
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int slot_bytes() const {
    return BN / ctas * depth * element_bytes;
  }
  // An even number of slots is split into a ring for K and one for V. With an odd number K and V
  // tiles alternate in one shared ring.
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr bool has_shared_ring() const { return slots % 2 != 0; }
  // Parts of a stage, each with barriers of its own: K along the head dim, one per swizzle width
  // (a part can't be narrower), V along the keys. Q K' and P V start on the first part. What that
  // saves: docs/decisions/0035-parts-of-a-stage.md.
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int num_mma_stages() const {
    return depth / swizzle_elements();
  }
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr pipeline::KVTiling kv_tiling() const {
    return {.BN = BN,
            .BK0 = depth / num_mma_stages(),
            .BK1 = BN / num_mma_stages(),
            .padded_depth = depth,
            .num_kv_stages = has_shared_ring() ? slots : slots / 2,
            .num_qk_stages = num_mma_stages(),
            .num_pv_stages = num_mma_stages(),
            .pair_cta = ctas == 2,
            .swizzle = swizzle};
  }

  // Whether a row's scores stay in registers between the maximum and exp2. Otherwise the softmax
  // warps read S twice.
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr bool holds_scores() const {
    return scores == ScoreClass::kPlain && BN <= 128;
  }
  // Columns of S per tcgen05.ld. A load of 32 columns needs 32 consecutive registers; ptxas spilled
  // with several such blocks live, so scores that are read twice are loaded 16 columns at a time.
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int batch() const {
    return holds_scores() && BN >= 64 ? 32 : 16;
  }
  // Keys of the first part of P: the most whose P V ends before softmax has stored the rest. P V
  // takes a cycle a key for 64 bytes of V's row, exp2 takes 6 (0035): half of the keys where rows
  // have 256 bytes, else three quarters.
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int first_part() const {
    const int quarters = depth * element_bytes > 128 ? 2 : 3;
    return core::align_down(quarters * BN / 4, batch());
  }

  [[nodiscard]] PAGODA_HOST_DEVICE constexpr TmemMap tmem() const {
    return {{0, BN}, {2 * BN, 2 * BN + depth}, 2 * BN + 2 * depth};
  }
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int q_bytes() const {
    return kHalves * kRows * depth * element_bytes;
  }
  // nullptr, or the constraint that the values violate.
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr const char* fault() const {
    if (ctas != 1 && ctas != 2) return "an MMA has one CTA or a pair";
    if (depth % swizzle_elements() != 0) return "depth must be a multiple of the swizzle's width";
    if (kv_tiling().v_cols_per_cta() % swizzle_elements() != 0) {
      return "a CTA's columns of V must be a multiple of the swizzle's width";
    }
    if (num_mma_stages() > 2) return "K and V have one part or two";
    if (BN % batch() != 0 || first_part() < mma_k() || first_part() >= BN) {
      return "P has two parts of whole batches";
    }
    if (tmem().end > kTmemColumns) return "two S and two O do not fit in tensor memory";
    if (slots < 3) return "a ring needs K, V and one more to go on loading";
    if (q_bytes() + slots * slot_bytes() + kOtherBytes > kSharedBytes) {
      return "Q and the slots do not fit in shared memory";
    }
    if (2 * softmax_registers + correction_registers + other_registers != 512) {
      return "the roles' registers must fill the file";
    }
    return nullptr;
  }
};

PAGODA_HOST_DEVICE constexpr int padded_depth(int head_dim) { return (head_dim + 63) / 64 * 64; }

// Two S and two O fit in 512 columns: BN <= (512 - 2 depth) / 2. Pages that neither divide such a
// BN nor are a multiple of it are loaded in parts (kv_copy_rows); Modular rounds BN to a power of
// two instead.
PAGODA_HOST_DEVICE constexpr int tile_keys(int depth, int mma_k) {
  const int most = core::align_down(kTmemColumns / 2 - depth, mma_k);
  return most < 256 ? most : 256;
}

// `head_dim` is at most 128; with ctas == 2 it is above 64.
PAGODA_HOST_DEVICE constexpr TileConfig tile_of(int element_bytes, int head_dim, ScoreClass scores,
                                                int ctas = 1) {
  TileConfig tile;
  tile.ctas = ctas;
  tile.element_bytes = element_bytes;
  tile.swizzle = kernels::sm100::swizzle_of(element_bytes);
  tile.depth = padded_depth(head_dim);
  tile.BN = tile_keys(tile.depth, tile.mma_k());
  // A slot needs a full and an empty barrier of 8 bytes each.
  tile.slots = (kSharedBytes - kOtherBytes - tile.q_bytes()) / (tile.slot_bytes() + 16);
  tile.scores = scores;
  if (!tile.holds_scores()) {  // registers that the softmax warps do not need go to the others
    tile.softmax_registers = 152;
    tile.correction_registers = 104;
    tile.other_registers = 104;
  }
  if (ctas == 2) {  // the correction warps hold addresses of both CTAs
    tile.correction_registers = tile.holds_scores() ? 104 : 112;
    (tile.holds_scores() ? tile.softmax_registers : tile.other_registers) -= 8;
  }
  return tile;
}

}  // namespace pagoda::mha_sm100
