// Indices of the executing thread in the emulator.
#pragma once

#include "arch/emu/runtime/machine.hpp"
#include "arch/types.hpp"

namespace pagoda::arch {
inline namespace emu {

inline int thread_idx() { return emulator::Machine::current_thread().index; }
inline int lane_idx() { return thread_idx() % 32; }
inline int warp_idx() { return thread_idx() / 32; }
inline int warpgroup_idx() { return thread_idx() / 128; }
inline int block_dim() { return emulator::Machine::current().shape().threads; }
inline Dim3 block_idx() { return emulator::Machine::current_thread().cta->block_idx; }
inline Dim3 grid_dim() { return emulator::Machine::current().shape().grid; }

}  // namespace emu
}  // namespace pagoda::arch
