// Faults that a kernel has in a mutant only (`pagoda emulate --mutate`). On the GPU each function
// below returns its right value and leaves no code; in the emulator, too, but for the mutant of the
// fault that `fault` or `ring` names.
//
// A wrong value in the arithmetic. Each line that calls one is a fault of its own:
//   T mutable_value(const char* fault, T value, T wrong)     wrong; it must have no side effects
//   float mutable_factor(const char* fault, float value)     1.02 times the value
// Memory that two stages or two streams share by mistake. All lines that name a fault have it
// together:
//   uint32_t mutable_stage(const char* ring, uint32_t stage) the memory of stage 0 for stage 1
//   T mutable_place(const char* fault, T own, T other)       other
#pragma once

#include "core/target.hpp"

#if PAGODA_ON_NVIDIA
#include "arch/ptx/fault.hpp"
#elif PAGODA_ON_AMD
#include "arch/hip/fault.hpp"
#else
#include "arch/emu/fault.hpp"
#endif
