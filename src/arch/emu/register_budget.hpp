// setmaxnreg in the emulator: moves registers between warps and their CTA. The kernel's launch
// bounds are LaunchShape::registers; how many a role really uses, only the compiler knows.
#pragma once

#include "arch/layout/where.hpp"
#include "emulator/memory/register_file.hpp"

namespace pagoda::arch {
inline namespace emu {

template <int N>
void register_budget_increase(Where where = Where::current()) {
  static_assert(N % 8 == 0 && N >= 24 && N <= 256, "a budget is a multiple of 8 in 24..256");
  emulator::register_budget_increase(N, where);
}
template <int N>
void register_budget_decrease(Where where = Where::current()) {
  static_assert(N % 8 == 0 && N >= 24 && N <= 256, "a budget is a multiple of 8 in 24..256");
  emulator::register_budget_decrease(N, where);
}

}  // namespace emu
}  // namespace pagoda::arch
