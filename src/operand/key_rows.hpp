// KeyRows: the layout of the KV cache, dense, ragged or paged, as a run-time value. The parameters
// of the attention kernels contain one.
#pragma once

#include <cstdint>

#include "core/target.hpp"
#include "operand/kv_operand.hpp"

namespace pagoda::operand {

enum class KeyRowsKind : uint8_t { kDense, kRagged, kPaged };

// The coordinates of one key: `row` of page or padded sequence `outer` (ragged: outer is 0).
struct KeyCoordinates {
  int32_t outer = 0;
  uint32_t row = 0;
};

// The keys of one sequence, for look-ups one by one.
struct SequenceRows {
  arch::GlobalPtr<const int32_t> pages = nullptr;  // nullptr: not paged
  uint32_t page_size = 1;
  KeyCoordinates first{};  // of key 0; paged: its row, counted over the sequence's pages

  // `key` must be less than the sequence's number of keys.
  PAGODA_DEVICE KeyCoordinates at(uint32_t key) const {
    const uint32_t row = first.row + key;
    if (pages == nullptr) return {first.outer, row};
    return {arch::load_read_only(pages + row / page_size), row % page_size};
  }
};

struct KeyRows {
  KeyRowsKind kind = KeyRowsKind::kDense;
  DenseRows dense{};
  RaggedRows ragged{};
  PagedRows paged{};
  // Optional: [batch], left padding: rows of a sequence before its key 0.
  arch::GlobalPtr<const int32_t> leftpad = nullptr;

  PAGODA_DEVICE uint32_t num_keys(int32_t batch) const {
    const uint32_t rows = used_rows(batch), first = first_row(batch);
    return rows < first ? 0 : rows - first;
  }
  // The cache line with the length of sequence `batch`, or the offsets that it is made from.
  PAGODA_DEVICE void prefetch_lengths(int32_t batch) const {
    const arch::GlobalPtr<const int32_t> lengths =
        kind == KeyRowsKind::kPaged
            ? paged.lengths
            : (kind == KeyRowsKind::kRagged ? ragged.offsets : dense.lengths);
    if (lengths != nullptr) arch::prefetch_l1(lengths + batch);
  }
  // Key 0's row in its sequence.
  PAGODA_DEVICE uint32_t first_row(int32_t batch) const {
    return leftpad == nullptr ? 0 : static_cast<uint32_t>(arch::load_read_only(leftpad + batch));
  }
  // The page size; 0 = not paged.
  PAGODA_HOST_DEVICE int32_t paged_size() const {
    return kind == KeyRowsKind::kPaged ? paged.page_size : 0;
  }
  PAGODA_DEVICE SequenceRows sequence(int32_t batch) const {
    const uint32_t first = first_row(batch);
    if (kind == KeyRowsKind::kDense) return {nullptr, 1, {batch, first}};
    if (kind == KeyRowsKind::kRagged) {
      const auto start = static_cast<uint32_t>(arch::load_read_only(ragged.offsets + batch));
      return {nullptr, 1, {0, start + first}};
    }
    return {paged.pages_of(batch), static_cast<uint32_t>(paged.page_size), {0, first}};
  }
  // The rows of the tile that starts at key `base_key`. Indices with several pages need kPaged.
  // Pages have no left padding here: a tile would start at any row of a page.
  template <class Indices>
  PAGODA_DEVICE Indices populate(int32_t batch, uint32_t base_key) const {
    if constexpr (Indices::num_pages == 1) {
      if (kind != KeyRowsKind::kPaged) {
        const uint32_t base_row = first_row(batch) + base_key;
        if (kind == KeyRowsKind::kDense) return dense.template populate<Indices>(batch, base_row);
        return ragged.template populate<Indices>(batch, base_row);
      }
    }
    return paged.template populate<Indices>(batch, base_key);
  }

 private:
  // Rows of the sequence up to its last key.
  PAGODA_DEVICE uint32_t used_rows(int32_t batch) const {
    if (kind == KeyRowsKind::kPaged) return paged.num_keys(batch);
    return kind == KeyRowsKind::kRagged ? ragged.num_keys(batch) : dense.num_keys(batch);
  }
};
static_assert(KVOperand<KeyRows>);

}  // namespace pagoda::operand
