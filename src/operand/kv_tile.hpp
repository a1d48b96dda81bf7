// KVSource and KVTileIterator: K or V of one sequence and KV head in global memory, row by row.
// Unlike TMA this serves every layout: any page size, any strides, 16-bit elements or e4m3.
#pragma once

#include <cstdint>

#include "arch/memory.hpp"
#include "core/target.hpp"
#include "operand/key_rows.hpp"

namespace pagoda::operand {

// K or V of one KV head.
struct KVSource {
  arch::GlobalPtr<const char> data = nullptr;  // row 0 of page or padded sequence 0
  int64_t outer_bytes = 0;                     // from a page or padded sequence to the next
  int64_t row_bytes = 0;
  int32_t dim = 0;            // elements of a row
  int32_t element_bytes = 2;  // 1: e4m3
  bool is_aligned = false;    // rows start at multiples of 8 elements

  [[nodiscard]] PAGODA_DEVICE arch::GlobalPtr<const char> row(KeyCoordinates key) const {
    return data + (key.outer * outer_bytes + key.row * row_bytes);
  }
};

// The rows of one KV tile, from key `first_key` of a sequence on. One look-up for the tile where
// its rows follow each other in memory, otherwise one for each row.
template <int BN>
class KVTile {
 public:
  KVTile() = default;
  PAGODA_DEVICE KVTile(const KVSource& source_, const KeyRows& keys, int32_t sequence,
                       int32_t first_key)
      : source(source_) {
    const SequenceRows rows = keys.sequence(sequence);
    const auto key = static_cast<uint32_t>(first_key);
    if (rows.pages != nullptr) {
      page_size_ = rows.page_size;
      const uint32_t row = rows.first.row + key;
      const uint32_t page = row / page_size_;
      pages_ = rows.pages + page;
      first_slot_ = row - page * page_size_;
      pages_per_row_ = 1 / static_cast<float>(page_size_);
    }
    is_contiguous_ = rows.pages == nullptr || first_slot_ + BN <= page_size_;
    if (is_contiguous_) first_row_ = source.row(rows.at(key));
  }

  // Whether the rows follow each other in memory.
  [[nodiscard]] PAGODA_DEVICE bool is_contiguous() const { return is_contiguous_; }
  // Row `row` of the tile, which must exist.
  [[nodiscard]] PAGODA_DEVICE arch::GlobalPtr<const char> row(int32_t row) const {
    return is_contiguous_ ? this->row<true>(row) : this->row<false>(row);
  }
  // The same where the caller branches on is_contiguous(), once for all rows.
  template <bool is_contiguous>
  [[nodiscard]] PAGODA_DEVICE arch::GlobalPtr<const char> row(int32_t row) const {
    if constexpr (is_contiguous) return first_row_ + row * source.row_bytes;
    const uint32_t slot = first_slot_ + static_cast<uint32_t>(row);
    // slot / page_size_ without a division. Below BN both are small integers, and the product is
    // further from the next integer than its rounding error.
    const uint32_t page =
        page_size_ >= BN
            ? (slot >= page_size_ ? 1 : 0)
            : static_cast<uint32_t>((static_cast<float>(slot) + 0.5F) * pages_per_row_);
    return source.row({arch::load_read_only(pages_ + page), slot - page * page_size_});
  }

  KVSource source;

 private:
  arch::GlobalPtr<const int32_t> pages_ = nullptr;  // from the page of the first row on
  uint32_t page_size_ = 1, first_slot_ = 0;
  float pages_per_row_ = 1;
  bool is_contiguous_ = false;
  arch::GlobalPtr<const char> first_row_ = nullptr;
};

}  // namespace pagoda::operand
