// Faults that a kernel has in a mutant only (`pagoda emulate --mutate`): memory that two stages or two
// streams share by mistake. On the GPU, and in the emulator but for the mutant, both are the identity. All
// places that name a fault have it together.
//
//   mutable_stage(const char* ring, uint32_t stage)   the stage whose memory is used; the fault: 0 for 1
//   mutable_place(const char* fault, T own, T other)  own; the fault: other
#pragma once

#include "core/target.hpp"

#if PAGODA_ON_GPU
#include "arch/ptx/fault.hpp"
#else
#include "arch/emu/fault.hpp"
#endif
