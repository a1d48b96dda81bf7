// PTX implementation of arch/register_budget.hpp: setmaxnreg (sm_90a, sm_100a). The kernel needs
// __launch_bounds__ with a minimum of CTAs, otherwise ptxas ignores the instruction.
//
// PTX ISA, "Miscellaneous Instructions": setmaxnreg. inc blocks until the CTA's pool has the
// registers.
#pragma once

#include "arch/layout/where.hpp"
#include "core/target.hpp"

namespace pagoda::arch {
inline namespace ptx {

template <int N>
PAGODA_DEVICE void register_budget_increase(Where = Where::current()) {
  static_assert(N % 8 == 0 && N >= 24 && N <= 256, "a budget is a multiple of 8 in 24..256");
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N));
}
template <int N>
PAGODA_DEVICE void register_budget_decrease(Where = Where::current()) {
  static_assert(N % 8 == 0 && N >= 24 && N <= 256, "a budget is a multiple of 8 in 24..256");
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N));
}

}  // namespace ptx
}  // namespace pagoda::arch
