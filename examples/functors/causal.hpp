// CausalAgain: Mask::causal() as a functor. `./dev gpu` compares the time of both.
#pragma once

#include "pagoda/functor.hpp"

struct CausalAgain {
  [[nodiscard]] PAGODA_FUNCTOR bool keep(const pagoda::QueryRow& row, int32_t key) const {
    return key <= row.position;
  }
  [[nodiscard]] PAGODA_FUNCTOR pagoda::VisibleKeys visible(const pagoda::QueryRows& rows) const {
    return {.keys = {0, rows.last_position() + 1}, .unmasked = {0, rows.first_position + 1}};
  }

  static constexpr bool kIsCausal = true;
};
