// KeyRows: where the keys of a sequence lie, decided at run time: dense, ragged or paged. What the
// parameters of an attention kernel carry.
#pragma once

#include <cstdint>

#include "core/target.hpp"
#include "operand/kv_operand.hpp"

namespace pagoda {

enum class KeyRowsKind : uint8_t { kDense, kRagged, kPaged };

struct KeyRows {
  KeyRowsKind kind = KeyRowsKind::kDense;
  DenseRows dense{};
  RaggedRows ragged{};
  PagedRows paged{};

  PAGODA_DEVICE uint32_t num_keys(int32_t batch) const {
    if (kind == KeyRowsKind::kPaged) return paged.num_keys(batch);
    return kind == KeyRowsKind::kRagged ? ragged.num_keys(batch) : dense.num_keys(batch);
  }
  // 0 where there are no pages.
  PAGODA_HOST_DEVICE int32_t paged_size() const {
    return kind == KeyRowsKind::kPaged ? paged.page_size : 0;
  }
  // The rows of the tile that starts at key `base_row`; Indices of a paged instance only where paged.
  template <class Indices>
  PAGODA_DEVICE Indices populate(int32_t batch, uint32_t base_row) const {
    if constexpr (Indices::num_pages == 1) {
      if (kind == KeyRowsKind::kDense) return dense.template populate<Indices>(batch, base_row);
      if (kind == KeyRowsKind::kRagged) return ragged.template populate<Indices>(batch, base_row);
    }
    return paged.template populate<Indices>(batch, base_row);
  }
};
static_assert(KVOperand<KeyRows>);

}  // namespace pagoda
