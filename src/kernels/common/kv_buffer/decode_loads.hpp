// DecodeLoads: the loads of Q, K and V in decoding (make_decode_work), with addresses made from
// DecodeArguments. Pages hold 2^n times as many keys as a thread layout has rows: the rows that a
// thread copies with one address follow each other. Narrow rows (Staging::kAsyncNarrow) end before
// the padded head dim.
#pragma once

#include <concepts>
#include <cstdint>
#include <type_traits>

#include "arch/cp_async.hpp"
#include "arch/quotient.hpp"
#include "kernels/common/kv_buffer/storage.hpp"

namespace pagoda::kernels::kv_buffer {

template <class Config>
class DecodeLoads {
 public:
  using Ops = Operands<Config>;
  using T = typename Config::T;
  using K = typename Ops::K;
  using V = typename Ops::V;
  static constexpr TileConfig tile = Config::tile;

  PAGODA_DEVICE DecodeLoads(const AttentionParams& params, const Work& work)
      : sequence_(work.sequence),
        first_key_(work.walk.start_column),
        num_keys_(work.rows.seqlen_kv),
        page_shift_(params.decode.page_shift),
        k_(source(params.k_data, params.decode.k, work.kv_head)),
        v_(source(params.v_data, params.decode.v, work.kv_head)),
        k_columns_(columns<K>(params)),
        v_columns_(columns<V>(params)) {
    if (params.decode.pages != nullptr) {
      pages_ =
          params.decode.pages + (params.decode.first_page_of != nullptr
                                     ? arch::load_read_only(params.decode.first_page_of + sequence_)
                                     : int64_t{sequence_} * params.decode.table_stride);
    }
  }

  // Issues the copies of Q, a thread the 128-byte parts of one row at the same place. Rows past the
  // group become zeros.
  static PAGODA_DEVICE void load_q(const AttentionParams& params, Storage<Config>& storage,
                                   const Work& work) {
    static_assert(Ops::threads / 8 == tile.BM);
    const int row = arch::thread_idx() / 8, chunk = arch::thread_idx() % 8;
    const bool exists = row < work.num_tokens * work.num_heads;
    int32_t token = 0, head = exists ? row : 0;
    if constexpr (tile.has_tokens) {
      token = arch::SmallDivisor(work.num_heads).quotient(head);
      head -= token * work.num_heads;
    }
    token += params.sequences.cu_rows != nullptr
                 ? work.memory_row
                 : work.sequence * (tile.has_tokens ? work.num_tokens : 1);
    const arch::GlobalPtr<const char> from =
        params.q_data.template as<const char>() +
        (int64_t{token} * params.decode.q_row_bytes +
         int64_t{work.first_head + head} * params.decode.q_head_bytes + 16 * chunk);
    const arch::SharedPtr<T> to =
        storage.q.at(operand::vector_index<Ops::q_layout>(row, chunk) * 8);
    const Columns columns = DecodeLoads::columns<K>(params);
    PAGODA_UNROLL
    for (int j = 0; j < tile.depth_qk / 8; j += 8) {
      const bool has_chunk = exists && columns.has_chunk(8 * (chunk + j));
      // A copy of 0 bytes reads nothing, but its address must be valid.
      const arch::GlobalPtr<const char> chunk_from =
          Columns::kAll || has_chunk ? from + j * 16 : params.q_data.template as<const char>();
      arch::cp_async<16>(to + j * Ops::q_layout.chunk_stride() * 8, chunk_from, has_chunk ? 16 : 0);
    }
  }

  // Issues the copies of KV tile `index` of the work tile. Rows past the last key become zeros.
  template <class Buffer>
  PAGODA_DEVICE void load(int32_t index, Buffer& buffer) const {
    const Source& from = std::same_as<Buffer, K> ? k_ : v_;
    const int32_t key = first_key_ + index * tile.BN;
    if constexpr (Columns::kAll) {
      copy_tile(buffer.load_iter().tile(), from.data, from.page_bytes, from.row_bytes, pages_,
                page_shift_, sequence_, key, num_keys_ - key);
    } else {
      copy_narrow_tile(buffer.load_iter().tile(), from.data, from.page_bytes, from.row_bytes,
                       pages_, page_shift_, sequence_, key, num_keys_ - key,
                       std::same_as<Buffer, K> ? k_columns_.end : v_columns_.end);
    }
    buffer.load_iter().advance();
  }

 private:
  static constexpr bool is_narrow = tile.staging == Staging::kAsyncNarrow;
  using Columns = std::conditional_t<is_narrow, operand::FirstColumns, operand::AllColumns>;
  // Those of the rows of K, and of Q, or of V.
  template <class Buffer>
  static PAGODA_DEVICE Columns columns([[maybe_unused]] const AttentionParams& params) {
    if constexpr (is_narrow) {
      return {std::same_as<Buffer, K> ? params.dim_qk : params.dim_vo};
    } else {
      return {};
    }
  }

  struct Source {
    arch::GlobalPtr<const char> data;  // of the head in page 0
    int32_t page_bytes, row_bytes;
  };
  static PAGODA_DEVICE Source source(arch::GlobalPtr<const void> data,
                                     const DecodeArguments::Operand& operand, int32_t kv_head) {
    return {data.as<const char>() + int64_t{kv_head} * operand.head_bytes, operand.page_bytes,
            operand.row_bytes};
  }

  // A function of its own for the tiles of K and V, whose instructions are fetched once.
  static_assert(K::smem_layout == V::smem_layout && tile.k_steps() == 1 && tile.v_steps() == 1);
  static PAGODA_DEVICE_CALL void copy_tile(arch::SharedPtr<T> to, arch::GlobalPtr<const char> data,
                                           int32_t page_bytes, int32_t row_bytes,
                                           arch::GlobalPtr<const int32_t> pages, int32_t page_shift,
                                           int32_t sequence, int32_t first_key, int32_t num_rows) {
    copy_rows(to, data, page_bytes, row_bytes, pages, page_shift, sequence, first_key, num_rows,
              operand::AllColumns());
  }
  // The same where rows have `num_columns` elements.
  static PAGODA_DEVICE_CALL void copy_narrow_tile(
      arch::SharedPtr<T> to, arch::GlobalPtr<const char> data, int32_t page_bytes,
      int32_t row_bytes, arch::GlobalPtr<const int32_t> pages, int32_t page_shift, int32_t sequence,
      int32_t first_key, int32_t num_rows, int32_t num_columns) {
    copy_rows(to, data, page_bytes, row_bytes, pages, page_shift, sequence, first_key, num_rows,
              operand::FirstColumns{num_columns});
  }
  template <class OfRows>
  static PAGODA_DEVICE void copy_rows(arch::SharedPtr<T> to, arch::GlobalPtr<const char> data,
                                      int32_t page_bytes, int32_t row_bytes,
                                      arch::GlobalPtr<const int32_t> pages, int32_t page_shift,
                                      int32_t sequence, int32_t first_key, int32_t num_rows,
                                      OfRows columns) {
    K buffer(to, 0);
    buffer.template load_pages<false>(
        [&](int row) {
          const int32_t key = first_key + row, page = key >> page_shift;
          const int32_t of_page = key - (page << page_shift);
          const int32_t id = pages != nullptr ? arch::load_read_only(pages + page) : sequence;
          return data + (int64_t{page_bytes} * id + int64_t{of_page} * row_bytes);
        },
        row_bytes, 0, num_rows, columns);
  }

  int32_t sequence_, first_key_, num_keys_, page_shift_;
  arch::GlobalPtr<const int32_t> pages_ = nullptr;
  Source k_, v_;
  Columns k_columns_, v_columns_;
};

}  // namespace pagoda::kernels::kv_buffer
