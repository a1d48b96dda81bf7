// AsyncKVBuffer: a KVBuffer whose loads are cp.async, from global to shared memory without
// registers. For 16-bit elements in rows that are aligned to 16 bytes.
#pragma once

#include <cstdint>

#include "arch/cp_async.hpp"
#include "operand/kv_buffer.hpp"

namespace pagoda::operand {

// Eight threads copy 128 consecutive bytes of a row to one line of shared memory.
constexpr VectorLayout async_smem_layout(KVBufferConfig config) {
  return panel_layout(config.btile_dim0, config.btile_dim1 / 8);
}

// num_tiles: tiles in shared memory.
template <KVBufferConfig config, class TensorCore, int BN, int WN, int BK, int num_threads,
          int num_tiles>
class AsyncKVBuffer
    : public KVBufferBase<config, TensorCore, async_smem_layout(config), BN, WN, BK, num_tiles> {
  using Base = KVBufferBase<config, TensorCore, async_smem_layout(config), BN, WN, BK, num_tiles>;

 public:
  using Base::simd_width;
  using Base::smem_layout;
  using typename Base::T;
  static constexpr ThreadLayout thread_layout = {num_threads / 8, 8};
  static_assert(config.btile_dim1 % 64 == 0 && config.btile_dim0 % thread_layout.rows == 0);

  PAGODA_DEVICE AsyncKVBuffer(arch::SharedPtr<T> shared, int warp_n)
      : Base(shared, warp_n), load_iter_(shared) {}

  PAGODA_DEVICE void begin(const KVTile<BN>& tile, int32_t num_b_rows, int32_t step = 0) {
    global_tile_ = tile;
    bounds_ = num_b_rows;
    global_step_ = step;
  }

  // Issues the copies of the next block tile. The caller commits them, with those of other buffers,
  // as a group, and knows that no warp reads the oldest of the num_tiles tiles any more.
  PAGODA_DEVICE void load_from_dram() {
    if (global_tile_.is_contiguous()) {
      copy<true>();
    } else {
      copy<false>();
    }
    load_iter_.advance();
    ++global_step_;
  }

  // The same for step `step` of a KV tile whose rows follow each other in memory from `first` on,
  // with all elements. All rows exist, or, unless has_all_rows, the first `num_rows`.
  template <bool has_all_rows = true>
  PAGODA_DEVICE void load_whole(arch::GlobalPtr<const char> first, int32_t row_bytes, int step,
                                int32_t num_rows = config.btile_dim0) {
    const int first_row = config.iterator_axis == 0 ? step * config.btile_dim0 : 0;
    const int first_column = config.iterator_axis == 1 ? step * config.btile_dim1 : 0;
    const int row = arch::thread_idx() / 8, chunk = arch::thread_idx() % 8;
    const arch::GlobalPtr<const char> from =
        first + (int64_t{first_row + row} * row_bytes + 2 * (first_column + chunk * simd_width));
    const arch::SharedPtr<T> to =
        load_iter_.tile() + vector_index<smem_layout>(row, chunk) * simd_width;
    PAGODA_UNROLL
    for (int i = 0; i < config.btile_dim0; i += thread_layout.rows) {
      const bool exists = has_all_rows || is_row(first_row + row + i, num_rows);
      PAGODA_UNROLL
      for (int j = 0; j < config.btile_dim1 / 8; j += 8) {
        constexpr int row_stride = smem_layout.row_stride(),
                      chunk_stride = smem_layout.chunk_stride();
        copy_chunk<has_all_rows>(to + (i * row_stride + j * chunk_stride) * simd_width,
                                 from + (int64_t{i} * row_bytes + j * 16), exists, first);
      }
    }
    load_iter_.advance();
  }

  // The same where the rows of a thread_layout follow each other: first_row(row) is the address of
  // row `row`, the first of them, which must exist.
  template <bool has_all_rows = true, class FirstRow>
  PAGODA_DEVICE void load_pages(const FirstRow& first_row, int32_t row_bytes, int step,
                                int32_t num_rows = config.btile_dim0) {
    constexpr int rows = thread_layout.rows;
    constexpr int row_stride = smem_layout.row_stride(), chunk_stride = smem_layout.chunk_stride();
    const int first = config.iterator_axis == 0 ? step * config.btile_dim0 : 0;
    const int first_column = config.iterator_axis == 1 ? step * config.btile_dim1 : 0;
    const int row = arch::thread_idx() / 8, chunk = arch::thread_idx() % 8;
    arch::GlobalPtr<const char> from[config.btile_dim0 / rows];
    PAGODA_UNROLL
    for (int i = 0; i < config.btile_dim0 / rows; ++i) {
      from[i] = first_row(has_all_rows || first + i * rows < num_rows ? first + i * rows : 0);
    }
    const int64_t offset = int64_t{row} * row_bytes + 2 * (first_column + chunk * simd_width);
    const arch::SharedPtr<T> to =
        load_iter_.tile() + vector_index<smem_layout>(row, chunk) * simd_width;
    PAGODA_UNROLL
    for (int i = 0; i < config.btile_dim0 / rows; ++i) {
      const bool exists = has_all_rows || is_row(first + row + i * rows, num_rows);
      PAGODA_UNROLL
      for (int j = 0; j < config.btile_dim1 / 8; j += 8) {
        copy_chunk<has_all_rows>(to + (i * rows * row_stride + j * chunk_stride) * simd_width,
                                 from[i] + (offset + j * 16), exists, from[i]);
      }
    }
    load_iter_.advance();
  }

  // Which of the num_tiles tiles the next load fills.
  PAGODA_DEVICE typename Base::SharedIterator& load_iter() { return load_iter_; }

  // Closes the group of the thread's copies so far; waits until at most `groups` are in flight.
  static PAGODA_DEVICE void commit(arch::Where where = arch::Where::current()) {
    arch::cp_async_commit(where);
  }
  template <int groups>
  static PAGODA_DEVICE void wait(arch::Where where = arch::Where::current()) {
    arch::cp_async_wait<groups>(where);
  }

  // The copies are in shared memory when their group is complete (wait, by the caller).
  template <int tile_id = 0>
  PAGODA_DEVICE void copy_to_shared() const {}

 private:
  static PAGODA_DEVICE bool is_row(int32_t row, int32_t num_rows) {
    return row < arch::mutable_value("last row of a KV tile dropped", num_rows, num_rows - 1);
  }
  // Copies 16 bytes, or writes zeros where they don't exist. A copy of 0 bytes reads nothing, but
  // its address, `any`, must be valid. A size that may be 0 takes a register.
  template <bool always_exists>
  static PAGODA_DEVICE void copy_chunk(arch::SharedPtr<T> to, arch::GlobalPtr<const char> from,
                                       bool exists, arch::GlobalPtr<const char> any) {
    if constexpr (always_exists) {
      arch::cp_async<16>(to, from);
    } else {
      arch::cp_async<16>(to, exists ? from : any, exists ? 16 : 0);
    }
  }

  template <bool is_contiguous>
  PAGODA_DEVICE void copy() {
    const int first_row = config.iterator_axis == 0 ? global_step_ * config.btile_dim0 : 0;
    const int first_column = config.iterator_axis == 1 ? global_step_ * config.btile_dim1 : 0;
    const int thread_row = arch::thread_idx() / 8, thread_chunk = arch::thread_idx() % 8;
    const int32_t column = first_column + thread_chunk * simd_width;
    const arch::SharedPtr<T> to =
        load_iter_.tile() + vector_index<smem_layout>(thread_row, thread_chunk) * simd_width;
    PAGODA_UNROLL
    for (int i = 0; i < config.btile_dim0; i += thread_layout.rows) {
      const int32_t row = first_row + thread_row + i;
      // Not is_row(row, bounds_): with that ptxas 13.0 spills in the prefill kernels of d64.
      const bool exists =
          row < arch::mutable_value("last row of a KV tile dropped", bounds_, bounds_ - 1);
      // A copy of 0 bytes reads nothing: any valid address will do.
      const arch::GlobalPtr<const char> from =
          exists ? global_tile_.template row<is_contiguous>(row) + 2 * column
                 : global_tile_.source.data;
      const int32_t left = exists ? global_tile_.source.dim - column : 0;
      PAGODA_UNROLL
      for (int j = 0; j < config.btile_dim1 / 8; j += 8) {
        const int32_t count = left - j * simd_width;
        const int32_t bytes = count < 0 ? 0 : (count < simd_width ? 2 * count : 16);
        // The swizzle repeats every 8 rows and 8 chunks.
        constexpr int row_stride = smem_layout.row_stride(),
                      chunk_stride = smem_layout.chunk_stride();
        arch::cp_async<16>(to + (i * row_stride + j * chunk_stride) * simd_width,
                           bytes > 0 ? from + j * 16 : global_tile_.source.data, bytes);
      }
    }
  }

  typename Base::SharedIterator load_iter_;  // the tile that the next load fills
  KVTile<BN> global_tile_;
  int32_t global_step_ = 0;
  int32_t bounds_ = 0;
};

}  // namespace pagoda::operand
