// setmaxnreg in the emulator: warps release registers to their CTA and acquire them from it. They
// start with LaunchShape::registers; the emulator does not know how many a role uses.
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
