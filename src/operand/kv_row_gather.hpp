// Copies of a K or V tile row by row with cp.async, for pages that TMA can't serve (any page size,
// any stride that is a multiple of 16 bytes) into the same places of shared memory. All threads of
// the producer take part; each arrives at the barrier when its rows have landed, so the barrier
// counts `num_threads` arrivals and no bytes. What cp.async writes is an ordinary write: before wgmma or
// TMA read it, a consumer that has waited at the barrier executes fence_proxy_async_shared.
#pragma once

#include <cstdint>

#include "arch/cp_async.hpp"
#include "arch/mbarrier.hpp"
#include "arch/memory.hpp"
#include "arch/swizzle.hpp"
#include "core/target.hpp"
#include "operand/kv_operand.hpp"

namespace pagoda {

template <class T_, int tile_rows, int BK, arch::Swizzle swizzle, int num_threads>
struct KVRowGather {
  using T = T_;
  static constexpr int gran = static_cast<int>(swizzle_width_bytes(swizzle) / sizeof(T));
  static constexpr int chunks = (BK + gran - 1) / gran;
  static constexpr int kWordElements = 16 / static_cast<int>(sizeof(T));  // of one copy
  static constexpr int words = chunks * gran / kWordElements;             // a row

  arch::GlobalPtr<const T> data;  // row 0 of head 0
  int64_t row_stride;             // elements
  int64_t head_stride;            // elements
  int32_t depth;                  // columns that exist; zeros from there on

  // Of the 16 bytes from `column` on: the head dim need not be a multiple of them.
  PAGODA_DEVICE int32_t valid_bytes(int32_t column) const {
    const int32_t rest = (depth - column) * static_cast<int32_t>(sizeof(T));
    return rest < 16 ? rest : 16;
  }

  // Rows [first_key, first_key + tile_rows) of the sequence; zeros from its last key on. `thread` in
  // 0 .. num_threads - 1.
  PAGODA_DEVICE void copy(const PagedRows& rows, int32_t batch, uint32_t first_key,
                          uint32_t num_keys, uint32_t kv_head, arch::SharedPtr<T> stage_base,
                          arch::MBarrier& mbar, int thread, uint32_t depth_offset = 0,
                          arch::Where where = arch::Where::current()) const {
    const uint32_t base = stage_base.address();
    for (int i = thread; i < tile_rows * words; i += num_threads) {
      const int row = i / words, word = i % words;
      const uint32_t key = first_key + static_cast<uint32_t>(row);
      const int32_t column = static_cast<int32_t>(depth_offset) + word * kWordElements;
      const bool exists = key < num_keys && column < depth;
      const arch::GlobalPtr<const T> from =
          exists ? data + rows.row_of(batch, key) * row_stride + kv_head * head_stride + column
                 : data;
      // Panel of the chunk, row, word of the row; then the swizzle.
      const uint32_t dense =
          static_cast<uint32_t>(((word * kWordElements / gran) * tile_rows + row) * gran +
                                word * kWordElements % gran) *
          sizeof(T);
      const uint32_t place = swizzle_address(base + dense, swizzle) - base;
      arch::cp_async<16>(stage_base + static_cast<int32_t>(place / sizeof(T)), from,
                         exists ? valid_bytes(column) : 0, where);
    }
    arch::cp_async_mbarrier_arrive(mbar, where);
  }
};

}  // namespace pagoda
