// KVTiling: tile sizes and stage counts of K and V, shared by producer and consumer. A kernel's
// configuration type contains one: `struct Config { static constexpr KVTiling kv{...}; };` (a type,
// because nvcc 13.0 does not compile kernels templated on a structural value).
#pragma once

#include "arch/layout/operand_tile.hpp"
#include "arch/layout/swizzle.hpp"
#include "core/target.hpp"

namespace pagoda::pipeline {

struct KVTiling {
  int BN = 128;            // keys per tile
  int BK0 = 64;            // head-dim columns of a part of K: padded_depth / num_qk_stages
  int BK1 = 128;           // keys of a part of V: BN / num_pv_stages
  int padded_depth = 128;  // head dim, up to a multiple of the swizzle's width
  int num_kv_stages = 2;
  int num_qk_stages = 1;  // parts of K, along the head dim, each with barriers of its own
  int num_pv_stages = 1;  // parts of V, along the keys; in a ring that K and V share num_qk_stages
  bool pair_cta = false;  // each CTA of a pair holds half of K's rows and of V's columns
  arch::Swizzle swizzle = arch::Swizzle::k128B;

  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int k_rows_per_cta() const {
    return pair_cta ? BN / 2 : BN;
  }
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int v_cols_per_cta() const {
    return pair_cta ? padded_depth / 2 : padded_depth;
  }
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int swizzle_elements(int element_bytes) const {
    return static_cast<int>(swizzle_width_bytes(swizzle)) / element_bytes;
  }
  // nullptr, or the reason why the values are inconsistent.
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr const char* fault(int element_bytes) const {
    if (BK0 * num_qk_stages != padded_depth) return "BK0 * num_qk_stages must be padded_depth";
    if (BK1 * num_pv_stages != BN) return "BK1 * num_pv_stages must be BN";
    if (BK1 % 16 != 0 || BN > 256) return "BK1 must be a multiple of 16, BN at most 256";
    if (BK0 % swizzle_elements(element_bytes) != 0)
      return "BK0 must be a multiple of the swizzle's width";
    if (v_cols_per_cta() % swizzle_elements(element_bytes) != 0) {
      return "the V columns of a CTA must be a multiple of the swizzle's width";
    }
    return nullptr;
  }
};

// One part of a K tile. K-major: rows are keys, the head dim is contiguous.
PAGODA_HOST_DEVICE constexpr arch::OperandTile tile_layout_k_major(int element_bytes, int rows,
                                                                   int depth,
                                                                   arch::Swizzle swizzle) {
  return {.mn = rows,
          .k = depth,
          .element_bytes = element_bytes,
          .major = arch::Major::kK,
          .swizzle = swizzle,
          .order = panel_order(arch::Major::kK)};
}

// One part of a V tile as the B operand of P V: its MN is the head dim, contiguous in memory, its K
// the keys.
PAGODA_HOST_DEVICE constexpr arch::OperandTile tile_layout_mn_major(int element_bytes, int columns,
                                                                    int keys,
                                                                    arch::Swizzle swizzle) {
  return {.mn = columns,
          .k = keys,
          .element_bytes = element_bytes,
          .major = arch::Major::kMN,
          .swizzle = swizzle,
          .order = panel_order(arch::Major::kMN)};
}

}  // namespace pagoda::pipeline
