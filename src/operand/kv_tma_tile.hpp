// The tensor map of K or V and the shape of one copy through it: box_rows rows of BK columns of one
// head, in chunks as wide as the swizzle. In shared memory a chunk is a panel [rows, gran] (gran:
// elements of one swizzle width); the panels of a tile follow each other.
#pragma once

#include <cstdint>

#include "arch/layout/tensor_map.hpp"
#include "arch/mbarrier.hpp"
#include "arch/memory.hpp"
#include "arch/tma.hpp"
#include "core/target.hpp"

namespace pagoda::operand {

// K or V in global memory for TMA: rows of `num_heads` heads of `depth` elements. Physical
// row r of head h starts at address + r * row_stride_bytes + h * head_stride_bytes. In a paged
// cache the rows of page p start at row p * page_stride_bytes / row_stride_bytes (NHD and HND
// alike).
struct KVRows {
  uint64_t address = 0;
  uint64_t num_rows = 0;
  uint64_t num_heads = 1;
  uint64_t depth = 0;
  uint64_t row_stride_bytes = 0;
  uint64_t head_stride_bytes = 0;
  arch::TensorMapType type = arch::TensorMapType::kBF16;
};

// is_pair: .cta_group::2; the bytes complete on the barrier of the pair's even CTA.
template <class T_, int box_rows_, int BK_, arch::Swizzle swizzle_, bool is_pair_ = false>
struct KVTmaTile {
  using T = T_;
  static constexpr int box_rows = box_rows_;
  static constexpr int BK = BK_;
  static constexpr arch::Swizzle swizzle = swizzle_;
  static constexpr bool is_pair = is_pair_;
  static constexpr int gran = static_cast<int>(swizzle_width_bytes(swizzle) / sizeof(T));
  static constexpr int chunks = (BK + gran - 1) / gran;
  static_assert(box_rows >= 1 && box_rows <= 256, "a box has at most 256 rows");

  const arch::TensorMap* map;

  static constexpr uint32_t bytes = static_cast<uint32_t>(box_rows * chunks * gran) * sizeof(T);

  // The map of `rows` for this shape. Host code; validate it by arch::validate.
  static constexpr arch::TensorMapSpec tensor_map(const KVRows& rows) {
    return {.type = rows.type,
            .rank = 3,
            .address = rows.address,
            .dims = {rows.depth, rows.num_heads, rows.num_rows},
            .strides_bytes = {rows.head_stride_bytes, rows.row_stride_bytes},
            .box = {gran, 1, box_rows},
            .swizzle = swizzle,
            .l2_promotion = arch::L2Promotion::k128B};
  }

  // Copies box_rows rows to a tile whose panels have `smem_rows` rows.
  template <int smem_rows>
  PAGODA_DEVICE void copy(arch::SharedPtr<T> to, arch::MBarrier& mbar, uint32_t row,
                          uint32_t kv_head, uint32_t depth_offset, int32_t elect,
                          arch::Eviction eviction, arch::Where where) const {
    PAGODA_UNROLL
    for (int chunk = 0; chunk < chunks; ++chunk) {
      const arch::TmaCoordinates<3> at{{static_cast<int32_t>(depth_offset) + chunk * gran,
                                        static_cast<int32_t>(kv_head), static_cast<int32_t>(row)}};
      const arch::SharedPtr<T> panel = to + chunk * smem_rows * gran;
      if constexpr (is_pair) {
        arch::tma_load_pair<3>(elect, panel, *map, at, mbar, eviction, where);
      } else {
        arch::tma_load<3>(elect, panel, *map, at, mbar, eviction, where);
      }
    }
  }
};

}  // namespace pagoda::operand
