// Registers that warps release to their CTA and acquire from it (setmaxnreg).
#pragma once

#include "emulator/machine/machine.hpp"

namespace pagoda::emulator {

void register_budget_increase(int registers, const Where& where);
void register_budget_decrease(int registers, const Where& where);

// Reports a warpgroup of which only some warps changed their budget.
void register_budget_end_cta(Reporter& reporter, const Cta& cta);

}  // namespace pagoda::emulator
