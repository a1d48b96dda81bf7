// DecodeLoads: the loads of Q, K and V in decoding (make_decode_work), with addresses made from
// DecodeArguments. All threads of a CTA load Q; a warp loads its own keys of each KV tile, 16 rows
// of K or V at a time, which one page holds. Narrow rows (Staging::kAsyncNarrow) end before the
// padded head dim. Those of an fp8 cache (kAsyncFp8) have half the bytes and a layout in shared
// memory of their own (DecodeFp8).
#pragma once

#include <concepts>
#include <cstdint>
#include <type_traits>

#include "arch/cp_async.hpp"
#include "arch/quotient.hpp"
#include "kernels/common/kv_buffer/decode_fp8.hpp"
#include "kernels/common/kv_buffer/decode_work.hpp"
#include "kernels/common/kv_buffer/storage.hpp"

namespace pagoda::kernels::kv_buffer {

// Row `row` of Q of a work tile in global memory. Those past the last head do not exist.
template <class Config>
struct DecodeQRow {
  arch::GlobalPtr<const char> data;
  bool exists;

  PAGODA_DEVICE DecodeQRow(const AttentionParams& params, const Work& work, int row)
      : exists(row < work.num_tokens * work.num_heads) {
    int32_t token = 0, head = exists ? row : 0;
    if constexpr (Config::tile.has_tokens) {
      token = arch::SmallDivisor(work.num_heads).quotient(head);
      head -= token * work.num_heads;
    }
    const int32_t tokens = work.rows.seqlen_kv - work.rows.q_position;  // of the sequence
    token += work.first_token +
             (params.sequences.cu_rows != nullptr ? work.memory_row : work.sequence * tokens);
    data = params.q_data.template as<const char>() +
           (int64_t{token} * params.decode.q_row_bytes +
            int64_t{work.first_head + head} * params.decode.q_head_bytes);
  }
};

// The ids of a sequence's pages; null for dense caches.
[[nodiscard]] PAGODA_DEVICE arch::GlobalPtr<const int32_t> pages_of_sequence(
    const DecodeArguments& decode, int32_t sequence) {
  if (decode.pages == nullptr) return nullptr;
  return decode.pages + (decode.first_page_of != nullptr
                             ? arch::load_read_only(decode.first_page_of + sequence)
                             : int64_t{sequence} * decode.table_stride);
}

template <class Config>
class DecodeLoads {
 public:
  using Ops = Operands<Config>;
  using T = typename Config::T;
  static constexpr TileConfig tile = Config::tile;
  static constexpr bool is_narrow = tile.staging == Staging::kAsyncNarrow;
  // K and V of a KV tile come in parts of these columns.
  static constexpr int kPartDepth = tile.k_BK;
  static constexpr int kParts = tile.depth_qk / kPartDepth;
  // Of rows of `columns`: those from a part's first one on.
  [[nodiscard]] static PAGODA_DEVICE int32_t columns_of(int32_t columns, int part) {
    return columns - part * kPartDepth;
  }
  // A warp's keys of a part, of K or of V, in shared memory, where elements have 16 bits.
  static constexpr operand::VectorLayout layout = operand::panel_layout(tile.WN(), kPartDepth / 8);
  // 16-byte vectors of a part of a row; of the warp's keys; from a row to the next.
  static constexpr int kVectors = kPartDepth * tile.kv_bytes() / 16;
  static constexpr int kVectorsOfWarp = tile.WN() * kVectors;
  static constexpr int kRowStride = tile.has_fp8_cache() ? kVectors : layout.row_stride();
  static constexpr int kChunkStride = tile.has_fp8_cache() ? 1 : layout.chunk_stride();
  static_assert(!tile.has_fp8_cache() || kParts == 1);
  static constexpr int kPages = tile.WN() / kPageRows;
  static_assert(tile.WN() % kPageRows == 0 && tile.depth_qk == tile.depth_vo);
  // The last columns of a part, without which narrow rows may be.
  static constexpr int kLastColumns = is_narrow ? 32 : 0;
  [[nodiscard]] static PAGODA_DEVICE bool has_last_columns(int32_t columns) {
    return is_narrow && columns > kPartDepth - kLastColumns;
  }

  PAGODA_DEVICE DecodeLoads(const AttentionParams& params, const Work& work, int warp)
      : sequence_(work.sequence),
        first_key_(work.walk.start_column + warp * tile.WN()),
        num_keys_(work.rows.seqlen_kv),
        page_shift_(params.decode.page_shift),
        k_(source(params.k_data, params.decode.k, work.kv_head, params.dim_qk)),
        v_(source(params.v_data, params.decode.v, work.kv_head, params.dim_vo)),
        pages_(pages_of_sequence(params.decode, work.sequence)) {}

  // Issues the copies of Q, a thread the 128-byte parts of one row at the same place. Rows past the
  // group become zeros.
  static PAGODA_DEVICE void load_q(const AttentionParams& params, Storage<Config>& storage,
                                   const Work& work) {
    static_assert(Ops::threads / 8 == tile.BM);
    const int row = arch::thread_idx() / 8, chunk = arch::thread_idx() % 8;
    const DecodeQRow<Config> q(params, work, row);
    const bool exists = q.exists;
    const arch::GlobalPtr<const char> from = q.data + 16 * chunk;
    if constexpr (tile.q_bytes == 1) {
      using Fp8 = DecodeFp8<tile.depth_qk>;
      PAGODA_UNROLL
      for (int j = 0; j < Fp8::kVectors; j += 8) {
        if (chunk + j >= Fp8::kVectors) continue;
        arch::cp_async<16>(storage.q.at(Fp8::index(row, chunk + j) * 8), from + j * 16,
                           exists ? 16 : 0);
      }
    } else {
      const arch::SharedPtr<T> to =
          storage.q.at(operand::vector_index<Ops::q_layout>(row, chunk) * 8);
      PAGODA_UNROLL
      for (int j = 0; j < tile.depth_qk / 8; j += 8) {
        const bool has_chunk = exists && (!is_narrow || 8 * (chunk + j) < params.dim_qk);
        // A copy of 0 bytes reads nothing, but its address must be valid.
        const arch::GlobalPtr<const char> chunk_from =
            !is_narrow || has_chunk ? from + j * 16 : params.q_data.template as<const char>();
        arch::cp_async<16>(to + j * Ops::q_layout.chunk_stride() * 8, chunk_from,
                           has_chunk ? 16 : 0);
      }
    }
  }

  // Which pages hold the warp's keys of a KV tile: their ids, or in dense caches the sequence.
  struct Pages {
    int32_t ids[kPages];
  };
  [[nodiscard]] PAGODA_DEVICE Pages find_pages(int32_t index) const {
    Pages pages;
    PAGODA_UNROLL
    for (int i = 0; i < kPages; ++i) {
      pages.ids[i] = sequence_;
      if (pages_ != nullptr) {
        const int32_t key = existing(first_key_of(index) + i * kPageRows);
        pages.ids[i] = arch::load_read_only(pages_ + (key >> page_shift_));
      }
    }
    return pages;
  }

  // Issue the copies of the warp's keys of part `part` of KV tile `index` of the work tile. Rows
  // past the last key become zeros. `is_first`: before the main loop.
  template <bool is_first>
  PAGODA_DEVICE void load_k(int32_t index, int part, const Pages& pages,
                            arch::SharedPtr<T> to) const {
    copy<is_first>(k_, index, part, pages, to);
  }
  template <bool is_first>
  PAGODA_DEVICE void load_v(int32_t index, int part, const Pages& pages,
                            arch::SharedPtr<T> to) const {
    copy<is_first>(v_, index, part, pages, to);
  }

 private:
  struct Source {
    arch::GlobalPtr<const char> data;  // of the head in page 0
    int32_t page_bytes, row_bytes;
    int32_t columns;
  };
  static PAGODA_DEVICE Source source(arch::GlobalPtr<const void> data,
                                     const DecodeArguments::Operand& operand, int32_t kv_head,
                                     int32_t columns) {
    return {data.as<const char>() + int64_t{kv_head} * operand.head_bytes, operand.page_bytes,
            operand.row_bytes, columns};
  }

  // Of this warp. It may be past the last key.
  [[nodiscard]] PAGODA_DEVICE int32_t first_key_of(int32_t index) const {
    return first_key_ + index * tile.BN;
  }
  [[nodiscard]] PAGODA_DEVICE int32_t existing(int32_t key) const {
    return key < num_keys_ ? key : num_keys_ - 1;
  }

  template <bool is_first>
  PAGODA_DEVICE void copy(const Source& from, int32_t index, int part, const Pages& pages,
                          arch::SharedPtr<T> to) const {
    const int32_t columns = columns_of(from.columns, part);
    constexpr int kPartBytes = kVectors * 16;
    PAGODA_UNROLL
    for (int page = 0; page < kPages; ++page) {
      const int32_t first = first_key_of(index) + page * kPageRows;
      const int32_t key = existing(first);  // a copy of 0 bytes needs a valid address, too
      const int32_t of_page = key - (key >> page_shift_ << page_shift_);
      const arch::GlobalPtr<const char> row =
          from.data + (int64_t{from.page_bytes} * pages.ids[page] +
                       int64_t{of_page} * from.row_bytes + part * kPartBytes);
      const arch::SharedPtr<T> row_to = to + page * kPageRows * kRowStride * 8;
      if constexpr (is_first) {
        copy_first_rows(row, from.row_bytes, columns, num_keys_ - first, row_to);
      } else {
        copy_rows(row, from.row_bytes, columns, num_keys_ - first, row_to);
      }
    }
  }
  // A function of its own, whose instructions are fetched once: the start of a call waits for those
  // more than for anything else. The main loop has them without the call, which takes a tenth of
  // its time.
  static PAGODA_DEVICE_CALL void copy_first_rows(arch::GlobalPtr<const char> first,
                                                 int32_t row_bytes, int32_t num_columns,
                                                 int32_t num_rows, arch::SharedPtr<T> to) {
    copy_rows(first, row_bytes, num_columns, num_rows, to);
  }
  // Copies 16 rows: eight lanes 128 bytes of a row, or four lanes where it has 64.
  static PAGODA_DEVICE void copy_rows(arch::GlobalPtr<const char> first, int32_t row_bytes,
                                      int32_t num_columns, int32_t num_rows,
                                      arch::SharedPtr<T> to) {
    constexpr int kLanes = kVectors < 8 ? kVectors : 8, kRowsAtOnce = tile.warp_size / kLanes;
    const int lane_row = arch::lane_idx() / kLanes, chunk = arch::lane_idx() % kLanes;
    const arch::GlobalPtr<const char> from = first + 16 * chunk;
    const int32_t end =
        arch::mutable_value("last row of a KV tile dropped", num_rows, num_rows - 1);
    PAGODA_UNROLL
    for (int i = 0; i < kPageRows; i += kRowsAtOnce) {
      const int row = lane_row + i;
      const bool exists = row < end;
      const arch::GlobalPtr<const char> row_from = from + int64_t{exists ? row : 0} * row_bytes;
      const arch::SharedPtr<T> row_to = to + vector_of(row, chunk) * 8;
      PAGODA_UNROLL
      for (int j = 0; j < kVectors; j += 8) {
        copy_chunk(first, num_columns, 8 * (chunk + j), exists, row_from + j * 16,
                   row_to + j * kChunkStride * 8);
      }
    }
  }
  static PAGODA_DEVICE int vector_of(int row, int chunk) {
    if constexpr (tile.has_fp8_cache()) {
      return DecodeFp8<tile.depth_qk>::index(row, chunk);
    } else {
      return operand::vector_index<layout>(row, chunk);
    }
  }
  // Columns that a narrow row does not have become zeros where a product reads them.
  static PAGODA_DEVICE void copy_chunk(arch::GlobalPtr<const char> any, int32_t num_columns,
                                       int column, bool exists, arch::GlobalPtr<const char> data,
                                       arch::SharedPtr<T> to) {
    if constexpr (is_narrow) {
      if (column >= kPartDepth - kLastColumns && !has_last_columns(num_columns)) return;
      const bool has_chunk = column < arch::mutable_value("last columns of K and V dropped",
                                                          num_columns, num_columns - 8);
      arch::cp_async<16>(to, has_chunk ? data : any, exists && has_chunk ? 16 : 0);
    } else {
      arch::cp_async<16>(to, data, exists ? 16 : 0);
    }
  }

  int32_t sequence_, first_key_, num_keys_, page_shift_;
  Source k_, v_;
  arch::GlobalPtr<const int32_t> pages_;
};

}  // namespace pagoda::kernels::kv_buffer
