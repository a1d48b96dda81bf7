// Liar: a causal mask whose visible() can be wrong, for tests that must find out.
#pragma once

#include "pagoda/functor.hpp"

struct Liar {
  enum Lie : int32_t { kNone, kLeavesKeysOut, kCallsMaskedKeysUnmasked };
  int32_t lie = kNone;

  [[nodiscard]] PAGODA_FUNCTOR bool keep(const pagoda::QueryRow& row, int32_t key) const {
    return key <= row.position;
  }
  [[nodiscard]] PAGODA_FUNCTOR pagoda::VisibleKeys visible(const pagoda::QueryRows& rows) const {
    const int32_t left_out = lie == kLeavesKeysOut ? 256 : 0;
    const int32_t more = lie == kCallsMaskedKeysUnmasked ? 256 : 0;
    return {.keys = {0, rows.last_position() + 1 - left_out},
            .unmasked = {0, rows.first_position + 1 + more}};
  }
};
