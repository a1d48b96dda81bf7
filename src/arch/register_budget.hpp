// Registers per thread of a warpgroup at run time (setmaxnreg, sm_90a). Every warp of the warpgroup
// calls; N is a multiple of 8 in 24 .. 256.
//
//   register_budget_increase<N>()     waits until other warpgroups have released enough registers
//   register_budget_decrease<N>()     releases registers
#pragma once

#include "core/target.hpp"

#if PAGODA_ON_GPU
#include "arch/ptx/register_budget.hpp"
#else
#include "arch/emu/register_budget.hpp"
#endif
