// HeadDecay: a score modification with a table per head. The score of a key decreases with its
// distance from the query, up to a limit: score - slopes[head] * min(|position - key|, limit).
#pragma once

#include "pagoda/functor.hpp"

struct HeadDecay {
  pagoda::DeviceArray<float> slopes;  // [num_q_heads]
  int32_t limit = 0;

  [[nodiscard]] PAGODA_FUNCTOR float score(const pagoda::QueryRow& row, int32_t key,
                                           float score) const {
    int32_t distance = row.position < key ? key - row.position : row.position - key;
    if (distance > limit) distance = limit;
    return score - slopes.load(row.q_head) * static_cast<float>(distance);
  }
};
