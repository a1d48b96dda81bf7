// The KV cache layouts: dense, ragged, paged. Each has the same interface: the number of keys of a
// sequence, and the physical rows of a tile.
#pragma once

#include <concepts>
#include <cstdint>

#include "arch/memory.hpp"
#include "arch/quotient.hpp"
#include "arch/thread.hpp"
#include "arch/warp.hpp"
#include "core/target.hpp"
#include "operand/paged_row_indices.hpp"

namespace pagoda::operand {

// [batch, rows_per_batch] rows; sequence lengths at most rows_per_batch.
struct DenseRows {
  uint32_t rows_per_batch = 0;
  arch::GlobalPtr<const int32_t> lengths = nullptr;  // [batch], or nullptr
  uint32_t keys_per_batch = 0;                       // keys of every sequence without lengths

  PAGODA_DEVICE uint32_t num_keys(int32_t batch) const {
    return lengths != nullptr ? static_cast<uint32_t>(arch::load_read_only(lengths + batch))
                              : keys_per_batch;
  }
  template <class Indices>
  PAGODA_DEVICE Indices populate(int32_t batch, uint32_t base_row) const {
    static_assert(Indices::num_pages == 1, "dense rows have no pages");
    return {{static_cast<uint32_t>(batch) * rows_per_batch + base_row}};
  }
};

// Concatenated sequences: sequence b has rows [offsets[b], offsets[b + 1]), of which it uses the
// first lengths[b].
struct RaggedRows {
  arch::GlobalPtr<const int32_t> offsets = nullptr;  // [batch + 1]
  arch::GlobalPtr<const int32_t> lengths = nullptr;  // optional: [batch]

  PAGODA_DEVICE uint32_t num_keys(int32_t batch) const {
    if (lengths != nullptr) return static_cast<uint32_t>(arch::load_read_only(lengths + batch));
    return static_cast<uint32_t>(arch::load_read_only(offsets + batch + 1) -
                                 arch::load_read_only(offsets + batch));
  }
  template <class Indices>
  PAGODA_DEVICE Indices populate(int32_t batch, uint32_t base_row) const {
    static_assert(Indices::num_pages == 1, "ragged rows have no pages");
    return {{static_cast<uint32_t>(arch::load_read_only(offsets + batch)) + base_row}};
  }
};

// Pages by block table (first_page_of == nullptr: the page ids of sequence b start at
// b * table_stride) or by CSR (they start at first_page_of[b]).
struct PagedRows {
  arch::GlobalPtr<const int32_t> pages = nullptr;          // page ids
  arch::GlobalPtr<const int32_t> first_page_of = nullptr;  // [batch + 1]
  int64_t table_stride = 0;
  arch::GlobalPtr<const int32_t> lengths =
      nullptr;  // [batch] keys; CSR: keys of the last page, if there is a page
  int32_t page_size = 1;
  uint32_t row_stride = 1;  // physical rows from one page to the next

  PAGODA_DEVICE uint32_t num_keys(int32_t batch) const {
    // First this branch: a load before it would be waited for.
    if (first_page_of == nullptr) {
      return static_cast<uint32_t>(arch::load_read_only(lengths + batch));
    }
    const int32_t length = arch::load_read_only(lengths + batch);
    const int32_t num_pages = arch::load_read_only(first_page_of + batch + 1) -
                              arch::load_read_only(first_page_of + batch);
    return num_pages == 0 ? 0 : static_cast<uint32_t>((num_pages - 1) * page_size + length);
  }
  // Where the page ids of a sequence begin in `pages`.
  PAGODA_DEVICE int64_t pages_offset(int32_t batch) const {
    return first_page_of != nullptr ? arch::load_read_only(first_page_of + batch)
                                    : batch * table_stride;
  }
  PAGODA_DEVICE arch::GlobalPtr<const int32_t> pages_of(int32_t batch) const {
    return pages + pages_offset(batch);
  }
  // Physical row of one key.
  PAGODA_DEVICE uint32_t row_of(int32_t batch, uint32_t key) const {
    return row_in(pages_of(batch), key);
  }
  // Looks up the pages of the keys [base_row, base_row + BN) of the sequence; base_row is a
  // multiple of the instance's page_size. Reads no page id past the sequence's last page. All lanes
  // of a warp call together, with the same arguments, and get the same rows.
  template <class Indices>
  PAGODA_DEVICE Indices populate(int32_t batch, uint32_t base_row) const {
    Indices indices;
    const uint32_t keys = num_keys(batch);
    if constexpr (Indices::num_pages == 1) {
      indices.rows[0] = base_row < keys ? row_of(batch, base_row) : kOutOfBoundsRow;
    } else {
      // Rows of one copy: a page, or a part of it.
      constexpr auto copy_rows = static_cast<uint32_t>(Indices::page_size);
      arch::expect(page_size % Indices::page_size == 0,
                   "the instance's page_size divides the page size");
      arch::expect(base_row % copy_rows == 0, "a tile starts at a multiple of the copy's rows");
      // Lane i looks up copy i. A lookup is a division and a load, 300 to 400 cycles, one after the
      // other in a thread.
      static_assert(Indices::num_pages <= 32, "a lane for every copy");
      const int32_t lane = arch::lane_idx();
      const uint32_t key = base_row + static_cast<uint32_t>(lane) * copy_rows;
      const bool is_valid = lane < Indices::num_pages && key < keys;
      const uint32_t row = is_valid ? row_in(pages_of(batch), key) : kOutOfBoundsRow;
      PAGODA_UNROLL
      for (int i = 0; i < Indices::num_pages; ++i) indices.rows[i] = arch::shuffle(row, i);
    }
    return indices;
  }

 private:
  // `table`: the page ids of the key's sequence.
  PAGODA_DEVICE uint32_t row_in(arch::GlobalPtr<const int32_t> table, uint32_t key) const {
    const int32_t page = arch::quotient(static_cast<int32_t>(key), page_size);
    return static_cast<uint32_t>(arch::load_read_only(table + page)) * row_stride +
           (key - static_cast<uint32_t>(page * page_size));
  }
};

// The interface that kernels use.
template <class Operand>
concept KVOperand = requires(const Operand operand) {
  { operand.num_keys(0) } -> std::same_as<uint32_t>;
  {
    operand.template populate<PagedRowIndices<64, 0>>(0, 0U)
    } -> std::same_as<PagedRowIndices<64, 0>>;
};
static_assert(KVOperand<DenseRows> && KVOperand<RaggedRows> && KVOperand<PagedRows>);

// Scales of (sequence, head) pairs: one for all, or an array.
struct ScaleFactors {
  float shared = 1;
  arch::GlobalPtr<const float> values = nullptr;
  int64_t sequence_stride = 0, head_stride = 0;

  PAGODA_DEVICE float of(int32_t sequence, int32_t head) const {
    if (values == nullptr) return shared;
    return arch::load_read_only(values + (sequence * sequence_stride + head * head_stride));
  }
};

}  // namespace pagoda::operand
