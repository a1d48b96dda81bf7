// The compile-time configuration of a Blackwell instance for head dims above 128: tile of a CTA
// pair, ring of slots, registers, tensor memory map, score class. The tiles are those that Modular
// documents for depth 256 and 512 (modular/modular, mha_depth512).
#pragma once

#include "arch/layout/tmem_layout.hpp"
#include "core/int_math.hpp"
#include "kernels/common/kinds.hpp"
#include "kernels/common/sm100/limits.hpp"

namespace pagoda::mha_sm100_d512 {

using kernels::LoadKind;
using kernels::ScoreClass;
using kernels::sm100::kOtherBytes;
using kernels::sm100::kSharedBytes;

inline constexpr int kPair = 2;         // CTAs of a cluster and of an MMA (cta_group::2)
inline constexpr int kWarpgroup = 128;  // threads
inline constexpr int kThreads = 3 * kWarpgroup;
inline constexpr int kMaxSections = 2;  // of O: an MMA writes at most 256 columns

// First columns of O and of both S in tensor memory.
struct TmemMap {
  int o, s[2];
  int end;
};

struct TileConfig {
  int element_bytes = 2;  // of Q, K, V and P
  int depth = 256;        // padded head dim, of QK and of VO
  // Query rows of a CTA: 128, or 64. With 64, a lane of tensor memory has half of a row's columns.
  int block_rows = 128;
  int BN = 128;   // keys of a tile
  int BK0 = 128;  // head-dim columns of a slot
  int slots = 8;  // of the ring that K and V share
  arch::Swizzle swizzle = arch::Swizzle::k128B;
  ScoreClass scores = ScoreClass::kPlain;
  // Per thread; the sum is 504 = 3 * 168, and 384 threads have 168 each at launch.
  int softmax_registers = 240;
  int correction_registers = 144;
  int other_registers = 120;

  // Parameters of the schedule (kernels/common/work.hpp): a work tile has one block of rows a CTA,
  // and the query heads of one KV head are packed into the rows.
  static constexpr LoadKind load = LoadKind::kTma;
  static constexpr int ctas = kPair;
  static constexpr bool fuses_heads = true;
  [[nodiscard]] static PAGODA_HOST_DEVICE constexpr bool has_even_tiles() { return false; }
  static PAGODA_HOST_DEVICE constexpr int num_blocks() { return kPair; }
  static PAGODA_HOST_DEVICE constexpr int threads() { return kThreads; }

  // K extent of one tcgen05.mma: 32 bytes, of the head dim in Q K', of the keys in P V.
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int mma_k() const { return 32 / element_bytes; }
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int swizzle_elements() const {
    return static_cast<int>(swizzle_width_bytes(swizzle)) / element_bytes;
  }
  // M of the MMAs.
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int pair_rows() const { return kPair * block_rows; }
  // Lanes of tensor memory that share a row.
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int row_lanes() const {
    return arch::kTmemLanes / block_rows;
  }
  // Columns of S of a lane.
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int score_columns() const { return BN / row_lanes(); }

  // A slot holds this CTA's part of K, [BN / 2 keys, BK0 columns], or of V, [BK1 keys, BK0
  // columns].
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int BK1() const { return BN / 2; }
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int slot_bytes() const {
    return BN / 2 * BK0 * element_bytes;
  }
  // O is computed in sections of 2 BK0 columns: the V of a slot in both CTAs.
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int section_columns() const { return kPair * BK0; }
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int sections() const {
    return depth / section_columns();
  }
  // Columns of a section in one lane.
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int lane_columns() const {
    return section_columns() / row_lanes();
  }

  // Columns per tcgen05.ld, of S and of O.
  static PAGODA_HOST_DEVICE constexpr int score_batch() { return 16; }
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int out_batch() const {
    return lane_columns() < 32 ? lane_columns() : 32;
  }
  // Columns of a section that the MMAs compute: those below dim_vo, in whole batches of every lane.
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int computed_columns(int section, int dim_vo) const {
    const int left =
        core::align_up(dim_vo - section * section_columns(), row_lanes() * out_batch());
    return left < section_columns() ? left : section_columns();
  }

  [[nodiscard]] PAGODA_HOST_DEVICE constexpr TmemMap tmem() const {
    const int s = sections() * lane_columns();
    return {0, {s, s + score_columns()}, s + 2 * score_columns()};
  }
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int q_bytes() const {
    return block_rows * depth * element_bytes;
  }
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int p_bytes() const {
    return block_rows * BN * element_bytes;
  }
  // nullptr, or the constraint that the values violate.
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr const char* fault() const {
    if (block_rows != 64 && block_rows != 128) return "M of a pair is 128 or 256";
    if (BK0 % swizzle_elements() != 0) return "BK0 must be a multiple of the swizzle's width";
    if (depth % section_columns() != 0 || sections() > kMaxSections) {
      return "depth must be one or two sections of 2 BK0 columns";
    }
    if (section_columns() > 256) return "an MMA has at most 256 columns";
    if (BN > 256 || BK1() % mma_k() != 0) return "a slot of V must hold whole K steps of the MMA";
    if (score_columns() % score_batch() != 0 || score_columns() % swizzle_elements() != 0) {
      return "a lane's scores must be whole batches and panels of P";
    }
    if (tmem().end > arch::kTmemColumns) return "two S and O do not fit in tensor memory";
    if (slots < 2) return "a ring needs two slots to overlap loads with MMAs";
    if (q_bytes() + p_bytes() + slots * slot_bytes() + kOtherBytes > kSharedBytes) {
      return "Q, P and the slots do not fit in shared memory";
    }
    if (softmax_registers + correction_registers + other_registers != 504) {
      return "the roles' registers must fill the file";
    }
    return nullptr;
  }
};

// The tile for a padded head dim of 256 or 512.
PAGODA_HOST_DEVICE constexpr TileConfig tile_of(int element_bytes, int depth, ScoreClass scores) {
  TileConfig tile;
  tile.element_bytes = element_bytes;
  tile.swizzle = kernels::sm100::swizzle_of(element_bytes);
  tile.depth = depth;
  tile.scores = scores;
  if (depth > 256) {
    tile.block_rows = 64;
    tile.BN = 256;
  }
  if (element_bytes == 1) {  // with 240 softmax registers ptxas spills at depth 512
    tile.softmax_registers = 248;
    tile.correction_registers = 136;
  }
  // A slot needs a full and an empty barrier of 8 bytes each.
  tile.slots =
      (kSharedBytes - kOtherBytes - tile.q_bytes() - tile.p_bytes()) / (tile.slot_bytes() + 16);
  return tile;
}

}  // namespace pagoda::mha_sm100_d512
