// The groups of the table, one translation unit each where nvcc compiles them.
#pragma once

#include "case.hpp"

namespace pagoda::primitives {

void add_sm80_cases(Cases& cases);
void add_sm90_cases(Cases& cases);
void add_wgmma_bf16_cases(Cases& cases);
void add_wgmma_f16_cases(Cases& cases);
void add_wgmma_e4m3_cases(Cases& cases);
void add_tcgen05_cases(Cases& cases);
void add_part_cases(Cases& cases);

inline Cases all_cases() {
  Cases cases;
  add_sm80_cases(cases);
  add_sm90_cases(cases);
  add_wgmma_bf16_cases(cases);
  add_wgmma_f16_cases(cases);
  add_wgmma_e4m3_cases(cases);
  add_tcgen05_cases(cases);
  add_part_cases(cases);
  return cases;
}

}  // namespace pagoda::primitives
