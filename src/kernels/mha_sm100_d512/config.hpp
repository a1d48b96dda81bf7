// What is compiled into an instance of the Blackwell kernel for large heads: element types, tile of a
// pair of CTAs, ring of slots, the map of tensor memory, and what happens to scores. Tiles are those that
// Modular documents for its kernel of depth 256 and 512 (modular/modular, mha_depth512).
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

inline constexpr int kPair = 2;         // CTAs that work together, a cluster
inline constexpr int kWarpgroup = 128;  // threads
inline constexpr int kThreads = 3 * kWarpgroup;
inline constexpr int kMaxSections = 2;  // of O: products of at most 256 columns

// Columns of tensor memory.
struct TmemMap {
  int o, s[2];
  int end;
};

struct TileConfig {
  int element_bytes = 2;  // of Q, K, V and P
  int depth = 256;        // padded head dim, of QK and of VO
  int block_rows =
      128;        // query rows of a CTA: 128, or 64, whose lanes have half a row's columns each
  int BN = 128;   // keys of a tile
  int BK0 = 128;  // head-dim columns of a slot; K is cut along them
  int slots = 8;  // of a ring that K and V share
  arch::Swizzle swizzle = arch::Swizzle::k128B;
  ScoreClass scores = ScoreClass::kPlain;
  // Of a thread; the three add up to 504, what 384 threads of 168 have.
  int softmax_registers = 240;
  int correction_registers = 144;
  int other_registers = 120;

  // What the schedule asks (kernels/common/work.hpp). A tile is a block of rows a CTA, and a token's
  // query heads of one KV head stand side by side in them.
  static constexpr LoadKind load = LoadKind::kTma;
  static constexpr bool fuses_heads = true;
  static PAGODA_HOST_DEVICE constexpr int num_blocks() { return kPair; }
  static PAGODA_HOST_DEVICE constexpr int threads() { return kThreads; }

  // Keys of one tensor core instruction (32 bytes of P), and its columns of Q and K.
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int mma_k() const { return 32 / element_bytes; }
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int swizzle_elements() const {
    return static_cast<int>(swizzle_width_bytes(swizzle)) / element_bytes;
  }
  // M of the products.
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int pair_rows() const { return kPair * block_rows; }
  // Lanes of tensor memory that share a row.
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int row_lanes() const {
    return arch::kTmemLanes / block_rows;
  }
  // Scores of a thread.
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int score_columns() const { return BN / row_lanes(); }

  // A slot holds, of this CTA, BN / 2 rows and BK0 columns of K, or BK1 keys and BK0 columns of V.
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int BK1() const { return BN / 2; }
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int slot_bytes() const {
    return BN / 2 * BK0 * element_bytes;
  }
  // O is computed in sections, as wide as the V of both CTAs.
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int section_columns() const { return kPair * BK0; }
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int sections() const {
    return depth / section_columns();
  }
  // .. of which a lane has so many.
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int lane_columns() const {
    return section_columns() / row_lanes();
  }

  // Columns of a load from tensor memory: of scores, of O.
  static PAGODA_HOST_DEVICE constexpr int score_batch() { return 16; }
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int out_batch() const {
    return lane_columns() < 32 ? lane_columns() : 32;
  }
  // Columns of a section that are computed: those that O has, in whole batches of every lane.
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
  // nullptr, or why the numbers do not fit together.
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr const char* fault() const {
    if (block_rows != 64 && block_rows != 128) return "a pair multiplies 128 or 256 rows";
    if (BK0 % swizzle_elements() != 0) return "BK0 must be a multiple of the swizzle's width";
    if (depth % section_columns() != 0 || sections() > kMaxSections) {
      return "depth must be one or two sections of 2 BK0 columns";
    }
    if (section_columns() > 256) return "a product has at most 256 columns";
    if (BN > 256 || BK1() % mma_k() != 0) return "a slot of V has whole steps of the product";
    if (score_columns() % score_batch() != 0 || score_columns() % swizzle_elements() != 0) {
      return "a lane's scores are whole batches and panels of P";
    }
    if (tmem().end > arch::kTmemColumns) return "two S and O do not fit in tensor memory";
    if (slots < 2) return "a ring loads one slot while another is multiplied";
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
  if (element_bytes == 1) {  // else ptxas spills at depth 512
    tile.softmax_registers = 248;
    tile.correction_registers = 136;
  }
  // A slot has two barriers of 8 bytes.
  tile.slots =
      (kSharedBytes - kOtherBytes - tile.q_bytes() - tile.p_bytes()) / (tile.slot_bytes() + 16);
  return tile;
}

}  // namespace pagoda::mha_sm100_d512
