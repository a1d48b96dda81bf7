// Documents: a causal mask over packed documents with a common prefix. Every query sees the first
// `prefix` keys, and the keys of its own document up to itself.
#pragma once

#include "pagoda/functor.hpp"

struct Documents {
  // Ascending, for all sequences: document i has the positions begins[i] .. begins[i + 1] - 1,
  // the last one all that follow. begins[0] = 0.
  pagoda::DeviceArray<int32_t> begins;
  int32_t num_documents = 0;
  int32_t prefix = 0;

  // The first position of the document that has `position`.
  [[nodiscard]] PAGODA_FUNCTOR int32_t begin_of(int32_t position) const {
    int32_t low = 0, high = num_documents;  // begins[low] <= position < begins[high]
    while (high - low > 1) {
      const int32_t middle = (low + high) / 2;
      (begins.load(middle) <= position ? low : high) = middle;
    }
    return begins.load(low);
  }

  [[nodiscard]] PAGODA_FUNCTOR bool keep(const pagoda::QueryRow& row, int32_t key) const {
    return key < prefix || (key <= row.position && key >= begin_of(row.position));
  }

  // Documents are in ascending order: the first row has the first key, and what all rows see
  // begins with the document of the last row.
  [[nodiscard]] PAGODA_FUNCTOR pagoda::VisibleKeys visible(const pagoda::QueryRows& rows) const {
    const int32_t last = rows.last_position();
    return {.keys = {begin_of(rows.first_position), last + 1},
            .prefix = {0, prefix},
            .unmasked = {begin_of(last), rows.first_position + 1}};
  }

  static constexpr bool kIsCausal = true;
};
