// Twice: doubles every score.
#pragma once

#include "pagoda/functor.hpp"

struct Twice {
  float factor = 2;
  [[nodiscard]] PAGODA_FUNCTOR float score(const pagoda::QueryRow& /*row*/, int32_t /*key*/,
                                           float score) const {
    return factor * score;
  }
};
